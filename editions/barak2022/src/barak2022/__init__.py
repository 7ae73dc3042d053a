"""The claims of barak2022, Hidden Progress in Deep Learning: one module for each group of figures and theorems."""
