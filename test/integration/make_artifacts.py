#!/usr/bin/env python3
"""Compiles the artifacts that AllocationTest opens. usage: make_artifacts.py FOLDER"""
import pathlib
import sys

import plimsoll_test as t


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    gpt = ["--bind", "batch=2", "--bind", "seq=16", "--threads", 2, "--optimizer", "adamw", "--clip-norm", 1]
    t.compile_model(t.GPT, folder / "gpt.plim", *gpt)
    t.compile_model(t.GPT, folder / "gpt-accumulate.plim", *gpt, "--accumulation", 2)
    t.compile_model(t.SMALL_ORACLES / "cnn.onnx", folder / "cnn.plim", "--threads", 2, "--optimizer", "sgd", "--momentum", 0.9)


main()
