#!/usr/bin/env python3
"""Steps per second of each run in a folder of md-scf.sh, and what fields cost beside the bound that memory sets."""
import pathlib
import re
import sys

# bytes that must move in a step: positions in, forces in and out (force kernel), positions in and 8 additions of 8 bytes to the
# second-level cache (densities); sums in and 0 out, densities and V out (fields), in f32 with 5 types
PARTICLE_FORCE, PARTICLE_DENSITY, VERTEX = 16 + 2 * 16, 16, 5 * (8 + 8 + 4 + 4)
BANDWIDTH = 4.8e12  # of an H200

root = pathlib.Path(sys.argv[1])
for folder in sorted(root.iterdir()):
    if not folder.is_dir():
        continue
    speed, particles, grid = {}, None, None
    for log in folder.glob("*.log"):
        text = log.read_text()
        found = re.search(r"steps in .*?: ([0-9.]+) TPS", text)
        if found:
            speed[log.stem] = float(found.group(1))
        size = re.search(r"(\d+) particles, ", text)
        particles = int(size.group(1)) if size else particles
        cells = re.search(r"grid (\d+) × (\d+) × (\d+)", text)
        grid = eval("*".join(cells.groups())) if cells else grid
    print(folder.name, particles, "particles,", grid, "vertices:", ", ".join(f"{k} {v:.0f} TPS" for k, v in sorted(speed.items())))
    if {"every-1", "every-none"} <= speed.keys():
        fields = 1e6 / speed["every-1"] - 1e6 / speed["every-none"]
        bound = 1e6 * (PARTICLE_DENSITY * particles + VERTEX * grid) / BANDWIDTH
        force = 1e6 * PARTICLE_FORCE * particles / BANDWIDTH
        print(f"  densities and fields: {fields:.1f} µs a step, memory alone {bound:.1f} µs; forces, memory alone {force:.1f} µs")
