"""Helpers around Plimsoll that need PyTorch: exporting a training graph (plimsoll.export). The compiler and runner need no Python."""
