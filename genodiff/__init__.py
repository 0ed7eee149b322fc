"""genodiff: masked-diffusion language models of genomes, on a CPU or a GPU."""

__version__ = "0.1.0"
