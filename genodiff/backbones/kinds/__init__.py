"""The kinds of networks: settings and presets of each, without torch."""
