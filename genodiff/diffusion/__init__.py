"""The masked diffusion itself: no network, no DNA, no file, no random state."""
