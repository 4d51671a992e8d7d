"""Energies of a frame by GALAMOST beside those of openmm_martini.py: compare.py TABLE.csv OPENMM.txt

Exits with 1 if a term deviates by more than 1e-6 of it.
"""
import csv
import sys

TERMS = {
    "pairs": ("PairExpression", "LennardJones", "ReactionField"),
    "bonds": ("HarmonicBond",),
    "angles": ("CosineSquaredAngle",),
}
with open(sys.argv[1]) as f:
    ours = next(csv.DictReader(f))
words = next(line for line in open(sys.argv[2]) if line.startswith("energies")).split()[1:]
theirs = dict(zip(words[::2], map(float, words[1::2])))
largest = 0.0
for term, columns in TERMS.items():
    # the reaction field of excluded pairs, which OpenMM leaves out here, is in the column BondExpression
    value = sum(float(ours[c]) for c in columns if c in ours)
    deviation = abs(value - theirs[term]) / abs(theirs[term])
    largest = max(largest, deviation)
    print(f"| {term} | {value:.9g} | {theirs[term]:.9g} | {deviation:.1e} |")
sys.exit(largest > 1e-6)
