"""The claims of daniely2020, Learning Parities with Neural Networks: one module for each part of the proof."""
