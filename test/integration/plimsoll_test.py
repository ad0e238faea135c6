"""What the end-to-end tests share: running the tools, safetensors, token files, and a small ONNX writer.

Standard library only, so that the tests need nothing that the product does not. A test script makes a Suite, calls its checks and ends
with `sys.exit(suite.finish())`; every check prints one line, every failure the command's output. The tools are found in $PLIMSOLL_BIN.
"""
import array
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("PLIMSOLL_BIN", ROOT / "build" / "bin"))
GPT = ROOT / "examples" / "gpt" / "gpt.onnx"
SMALL_ORACLES = ROOT / "test" / "oracles"


class Suite:
    """Counts checks. `scratch` is a temporary folder that is removed at the end of the process."""

    def __init__(self, title):
        self.title, self.checks, self.failures = title, 0, 0
        self._folder = tempfile.TemporaryDirectory(prefix="plimsoll-test-")
        self.scratch = pathlib.Path(self._folder.name)

    def check(self, condition, what, detail=""):
        self.checks += 1
        self.failures += not condition
        print(f"{'ok  ' if condition else 'FAIL'} {what}" + (f": {str(detail)[:2000]}" if detail and not condition else ""), flush=True)
        return bool(condition)

    def equal(self, found, expected, what):
        return self.check(found == expected, what, f"found {found!r}, expected {expected!r}")

    def near(self, found, expected, tolerance, what):
        """Absolute tolerance; the caller says in a comment where it comes from."""
        good = len(found) == len(expected) and all(abs(a - b) <= tolerance for a, b in zip(found, expected))
        return self.check(good, what, f"found {list(found)[:8]}, expected {list(expected)[:8]} within {tolerance:g}")

    def expect(self, code, texts, *command, **options):
        """The command exits with `code` and prints every text (a string or a list) on stdout or stderr. Gives the output."""
        result = run(*command, **options)
        texts = [texts] if isinstance(texts, str) else texts
        output = result.stdout + result.stderr
        missing = [text for text in texts if text not in output]
        name = pathlib.Path(str(command[0])).name
        self.check(result.returncode == code and not missing, f"{name} exits {code}: {texts[0] if texts else ''}",
                   f"exit {result.returncode}, missing {missing}\n      " + "\n      ".join(output.strip().splitlines()[-12:]))
        return output

    def finish(self):
        print(f"{self.title}: {self.checks} checks, {self.failures} failed")
        return 1 if self.failures or not self.checks else 0


# The tools.

def run(*command, **options):
    """Runs a command; names of tools are looked up in BIN."""
    words = [str(word) for word in command]
    if words[0].startswith("plimsoll-"):
        words[0] = str(BIN / words[0])
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300, **options)


def must(*command, **options):
    """Runs a command that has to succeed, or ends the test with its output. Gives stdout."""
    result = run(*command, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexited {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


def compile_model(model, artifact, *flags):
    must("plimsoll-compile", model, "-q", "-o", artifact, *flags)
    return artifact


def train(artifact, data, steps, *flags, metrics):
    """A run with a line for every step; gives those lines as dicts."""
    pathlib.Path(metrics).unlink(missing_ok=True)
    must("plimsoll-run", "train", artifact, *data_flags(data), "--steps", steps, "--metrics", metrics, *flags)
    return read_metrics(metrics)


def data_flags(data):
    return [word for port, source in data.items() for word in ("--data", f"{port}={source}")]


def read_metrics(path):
    return [line for line in map(json.loads, pathlib.Path(path).read_text().splitlines()) if "loss" in line]


# Files.

TYPES = {"F32": ("f", 1), "F64": ("d", 11), "I32": ("i", 6), "I64": ("q", 7), "U16": ("H", 4), "BOOL": ("b", 9)}


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} plus the metadata under None."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {None: header.pop("__metadata__", {})}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["dtype"], entry["shape"], data[8 + length + begin:8 + length + end])
    return tensors


def values(tensor):
    """A tensor of read_safetensors as a list of numbers."""
    return list(array.array(TYPES[tensor[0]][0], tensor[2]))


def write_safetensors(path, tensors):
    """tensors: {name: (dtype, shape, list of numbers)}"""
    header, body = {}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        data = array.array(TYPES[dtype][0], numbers).tobytes()
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def differing(one, other):
    """Names of tensors that are not bitwise equal in two safetensors files."""
    one, other = read_safetensors(one), read_safetensors(other)
    return sorted(str(name) for name in one.keys() | other.keys() if name is not None and one.get(name) != other.get(name))


def write_tokens(path, count, vocabulary, seed=1):
    """A deterministic token file (uint16) with some structure: a linear congruence, every other token repeated."""
    state, tokens = seed, array.array("H")
    while len(tokens) < count:
        state = (state * 1103515245 + 12345) % (1 << 31)
        tokens.extend([(state >> 16) % vocabulary] * 2)
    pathlib.Path(path).write_bytes(tokens[:count].tobytes())
    return path


# A small ONNX writer: protobuf's wire format by hand (field numbers are those of onnx.proto).

def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append((value & 127) | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def _field(number, value):
    """One field: int as varint, float as fixed 32 bits, str/bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def tensor(name, dtype, shape, numbers):
    """TensorProto with raw_data."""
    code, kind = TYPES[dtype]
    raw = array.array(code, numbers).tobytes()
    return b"".join(_field(1, size) for size in shape) + _field(2, kind) + _field(8, name) + _field(9, raw)


def external_tensor(name, dtype, shape, entries):
    """TensorProto whose data is elsewhere; entries: {key: value} of external_data."""
    pairs = b"".join(_field(13, _field(1, key) + _field(2, value)) for key, value in entries.items())
    return b"".join(_field(1, size) for size in shape) + _field(2, TYPES[dtype][1]) + _field(8, name) + pairs + _field(14, 1)


def port(name, dtype, shape):
    """ValueInfoProto; a dimension is a number or a symbol."""
    dims = b"".join(_field(1, _field(1, size) if isinstance(size, int) else _field(2, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, TYPES[dtype][1]) + _field(2, dims)))


def _attribute(name, value):
    if isinstance(value, bytes) and value[:1] == b"\x00":  # graph() marks a subgraph
        return _field(1, name) + _field(6, value[1:]) + _field(20, 5)
    if isinstance(value, (list, tuple)):
        return _field(1, name) + b"".join(_field(8, item) for item in value) + _field(20, 7)
    number, kind = {int: (3, 2), float: (2, 1), str: (4, 3), bytes: (5, 4)}[type(value)]
    return _field(1, name) + _field(number, value) + _field(20, kind)


def node(op, inputs, outputs, name="", **attributes):
    """NodeProto; attributes: int, float, str, list of int, TensorProto bytes, subgraph(...)."""
    text = "".join
    parts = [_field(1, item) for item in inputs] + [_field(2, item) for item in outputs]
    parts += [_field(3, name or text(outputs[:1])), _field(4, op)]
    parts += [_field(5, _attribute(key, value)) for key, value in attributes.items()]
    return b"".join(parts)


def _graph(nodes, inputs, outputs, initializers):
    return (b"".join(_field(1, item) for item in nodes) + _field(2, "g") + b"".join(_field(5, item) for item in initializers) +
            b"".join(_field(11, item) for item in inputs) + b"".join(_field(12, item) for item in outputs))


def subgraph(nodes, outputs, inputs=(), initializers=()):
    """A graph-valued attribute."""
    return b"\x00" + _graph(nodes, inputs, outputs, initializers)


def write_model(path, nodes, inputs, outputs, initializers=(), opset=20, producer="pytorch"):
    """ModelProto, IR version 8."""
    model = _field(1, 8) + _field(2, producer) + _field(7, _graph(nodes, inputs, outputs, initializers))
    pathlib.Path(path).write_bytes(model + _field(8, _field(1, "") + _field(2, opset)))
    return path
