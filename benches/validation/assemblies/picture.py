#!/usr/bin/env python3
"""Draws oriented particles of the last frame of a GSD file: python3 picture.py FILE PNG KIND [TYPE] [SIZE] [THICKNESS] [BETA]

KIND: janus (one patch), triblock (two), disk, rod. TYPE draws particles of this type only. THICKNESS is the share of the box along
the view that is drawn (1). Patches are red (as wide as BETA, 90 by default); disks and rods have the color of their axis, |x| red, |y| green,
|z| blue. Needs gsd, numpy and pillow.
"""

import sys

import gsd.hoomd
import numpy as np
from PIL import Image


def axes(q):
    w, x, y, z = q.T
    return np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)


def main():
    name, out, kind = sys.argv[1:4]
    given = sys.argv[4:] + [None] * 4
    size = int(given[1] or 900)
    share, beta = float(given[2] or 1), np.cos(np.radians(float(given[3] or 90)))
    with gsd.hoomd.open(name) as file:
        frame = file[-1]
    p = frame.particles
    keep = np.ones(p.N, bool) if not given[0] else p.typeid == p.types.index(given[0])
    box = np.array(frame.configuration.box[:3])
    keep &= p.position[:, 2] > (0.5 - share) * box[2]
    at, n = p.position[keep].astype(float), axes(p.orientation[keep].astype(float))
    # a box seen a little from the side and from above
    a, b = np.radians(18), np.radians(14)
    turn = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]]) @ np.array(
        [[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]]
    )
    colors = np.abs(n)
    at, n = at @ turn.T, n @ turn.T
    scale = size / (1.35 * max(box))
    image = np.full((size, size, 3), 1.0)
    depth = np.full((size, size), -np.inf)
    light = np.array([0.35, 0.5, 0.79])
    # half-axes along and across
    along, across = {"disk": (0.16, 0.46), "rod": (0.55, 0.18)}.get(kind, (0.4, 0.4))
    reach = max(along, across)
    low, high = at[:, 2].min(), at[:, 2].max() + 1e-9
    for x, axis, color in zip(at, n, colors):
        cx, cy = size / 2 + x[0] * scale, size / 2 - x[1] * scale
        r = int(np.ceil(reach * scale)) + 1
        i0, i1, j0, j1 = max(int(cy) - r, 0), min(int(cy) + r + 1, size), max(int(cx) - r, 0), min(int(cx) + r + 1, size)
        if i0 >= i1 or j0 >= j1:
            continue
        v, u = np.mgrid[i0:i1, j0:j1]
        u, v = (u - cx) / scale, (cy - v) / scale
        # x A x = 1 with A = 1/across² (1 − n n) + 1/along² n n; solved for the nearest z
        k0, k1 = 1 / across**2, 1 / along**2 - 1 / across**2
        m = u * axis[0] + v * axis[1]
        qa, qb = k0 + k1 * axis[2] ** 2, k1 * m * axis[2]
        qc = k0 * (u * u + v * v) + k1 * m * m - 1
        d = qb * qb - qa * qc
        hit = d > 0
        z = np.where(hit, (-qb + np.sqrt(np.maximum(d, 0))) / qa, 0)
        here = hit & (x[2] + z > depth[i0:i1, j0:j1])
        point = np.stack([u, v, z], axis=-1)
        c = point @ axis
        normal = point * k0 + (k1 * c)[..., None] * axis
        normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-12
        if kind in ("janus", "triblock"):
            cosine = c / along
            cosine = np.abs(cosine) if kind == "triblock" else cosine
            base = np.where((cosine >= beta)[..., None], [0.86, 0.2, 0.16], [0.82, 0.84, 0.88])
        else:
            base = np.broadcast_to(0.15 + 0.8 * color, normal.shape)
        fog = 0.35 + 0.65 * (x[2] - low) / (high - low)
        shade = (0.35 + 0.65 * np.maximum(normal @ light, 0))[..., None]
        image[i0:i1, j0:j1][here] = (fog * base * shade + (1 - fog))[here]
        depth[i0:i1, j0:j1][here] = (x[2] + z)[here]
    Image.fromarray((np.clip(image, 0, 1) * 255).astype(np.uint8)).save(out)


main()
