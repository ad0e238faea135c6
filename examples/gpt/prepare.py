#!/usr/bin/env python3
"""Turns a text into character tokens: OUT/train.bin and OUT/valid.bin (uint16) and OUT/vocab.json.

usage: prepare.py OUT [--text FILE]    without --text: the King James Bible of Debian's bible-kjv package
"""
import argparse
import array
import json
import pathlib
import subprocess


def bible():
    verses = subprocess.run(["bible", "-f", "Genesis1:1-Revelation22:21"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    return "\n".join(line.split(" ", 1)[1] for line in verses.splitlines() if " " in line) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    options = parser.parse_args()
    text = options.text.read_text() if options.text else bible()
    vocabulary = {character: index for index, character in enumerate(sorted(set(text)))}
    tokens = array.array("H", (vocabulary[character] for character in text))
    options.out.mkdir(parents=True, exist_ok=True)
    cut = len(tokens) * 19 // 20
    (options.out / "train.bin").write_bytes(tokens[:cut].tobytes())
    (options.out / "valid.bin").write_bytes(tokens[cut:].tobytes())
    (options.out / "vocab.json").write_text(json.dumps(vocabulary))
    print(f"{len(tokens):,} characters, vocabulary {len(vocabulary)}")


if __name__ == "__main__":
    main()
