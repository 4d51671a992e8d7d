"""A table of a run that was killed has the first rows of the whole one: parquet_part.py PART WHOLE."""

import sys

import pandas as pd

part, whole = (pd.read_parquet(path) for path in sys.argv[1:])
assert len(part) > 0
pd.testing.assert_frame_equal(part, whole[: len(part)], check_exact=True)
