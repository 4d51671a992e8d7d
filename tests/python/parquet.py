"""Tables of the same run as CSV and as Parquet have the same columns, types and values: parquet.py FOLDER_CSV FOLDER_PARQUET."""

import glob
import os
import sys

import pandas as pd
import pyarrow.parquet as pq

count = 0
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.csv"))):
    name = os.path.basename(path)[:-4]
    a = pd.read_csv(path, float_precision="round_trip")
    b = pd.read_parquet(os.path.join(sys.argv[2], name + ".parquet"))
    pd.testing.assert_frame_equal(a, b, check_exact=True)
    if len(a) < 10000:
        print(f"{name}: {len(a)} rows, {pq.read_table(os.path.join(sys.argv[2], name + '.parquet')).schema.types}")
    count += 1
assert count == 14, count
