"""Ways to spoil a file: by its bytes, by its JSON, by the header of its tensors, by its lines and by its links.

Every choice comes from a `random.Random`, so that hypothesis, a seed or atheris can be the one who chooses.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import lzma
import os
import struct
import tarfile
import zipfile
from pathlib import Path
from random import Random
from typing import Any

HUGE = (-1, 0, 1, 2**15, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30)
STRANGE: tuple[Any, ...] = (
    *(None, True, False, "", "x", "\x00", "\ud800", "../x", "/etc/passwd", "..", "é\n\r\t", "1e999", "9" * 5_000),
    *(1.5, -0.0, 1e308, float("nan"), float("inf"), [], {}, [[]], {"": None}, [None], {"a": {"b": [1]}}, *HUGE),
)
LINES = (
    *("", "\t\t\t", "0\t0\t0\t0", "-1\t-1\t-1\t-1", "9" * 400, "0 0 0 99999999999999999999", "a\tb\tc\t2014-02-30"),
    *("a\tb\tc\t9999-12-31", "a\tb\tc\t0001-01-01", "0\t0\t0\t-5", '"', "a,b,c,1e400", "a,b,c,99999999999999999"),
    *(
        "a,b,c,0001-01-01T00:00+23:59",
        "\x00",
        "\ufeff",
        "a\tb\tc\t####-##-##",
        "٣\t٣\t٣\t٣",
        "²\t²\t²\t²",
        "x" * 200_000,
    ),
    *("a,b,c,253402300800", "99999999999", "x\t²", "x\t٣", ",,,", "timestamp,head,relation_type,tail"),
)
BOMB = 96 << 20  # bytes of zeros that a few kilobytes unpack into


def spoil_bytes(data: bytes, choose: Random) -> bytes:
    """Flip bits, cut, insert, repeat or replace a few bytes."""
    spoiled = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 8))):
        place = choose.randrange(len(spoiled) + 1)
        what = choose.randrange(6)
        if what == 0 and place < len(spoiled):
            spoiled[place] ^= 1 << choose.randrange(8)
        elif what == 1:
            del spoiled[place:]
        elif what == 2:
            spoiled[place:place] = bytes(choose.randrange(256) for _ in range(choose.randrange(1, 9)))
        elif what == 3:
            spoiled[place : place + 8] = struct.pack("<q", choose.choice([n for n in HUGE if -(2**63) <= n < 2**63]))
        elif what == 4:
            end = min(len(spoiled), place + choose.randrange(1, 64))
            spoiled[place:place] = spoiled[place:end]
        else:
            del spoiled[place : place + choose.randrange(1, 64)]
    return bytes(spoiled)


def spoil_json(value: Any, choose: Random) -> bytes:
    """The JSON of a value in which something is of another kind, gone, new, doubled, or nested without end."""
    if choose.randrange(12) == 0:
        depth = choose.choice((50, 1_100, 200_000))
        return b"[" * depth + b"]" * (depth if choose.randrange(2) else 0)
    for _ in range(choose.choice((1, 1, 2, 4))):
        value = _change(value, choose)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change(value: Any, choose: Random) -> Any:
    """A value with one place in it changed."""
    if isinstance(value, dict) and value and choose.randrange(8):
        key = choose.choice(sorted(value))
        what = choose.randrange(8)
        rest = {name: one for name, one in value.items() if name != key}
        if what == 0:
            return rest
        if what == 1:
            return rest | {str(choose.choice(STRANGE)): value[key]}
        if what == 2:
            return value | {key: value[choose.choice(sorted(value))]}
        return value | {key: _change(value[key], choose)}
    if isinstance(value, list) and value and choose.randrange(4):
        place, what = choose.randrange(len(value)), choose.randrange(4)
        if what == 0:
            return value[:place] + value[place + 1 :]
        if what == 1:
            return [*value, value[place]]
        return [*value[:place], _change(value[place], choose), *value[place + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and choose.randrange(2):
        return choose.choice((value + 1, value - 1, -value, value * 1_000, value << 40, *HUGE))
    return choose.choice(STRANGE)


def spoil_safetensors(data: bytes, choose: Random) -> bytes:
    """Tensors under a header that says something else: other types, shapes, names, places or lengths."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    what = choose.randrange(8)
    if what == 0:
        return spoil_bytes(data, choose)
    if what == 1:
        return struct.pack("<Q", choose.choice([abs(n) % 2**64 for n in HUGE])) + data[8:]
    if what == 2:
        body = spoil_bytes(body, choose)
    name = choose.choice(sorted(set(header) - {"__metadata__"}))
    if what == 3:
        header[name]["dtype"] = choose.choice(("F64", "I64", "U8", "BOOL", "F16", "BF16", "I32", "F8_E4M3", "X", 5))
    elif what == 4:
        header[name] = _retyped(header[name], choose)
    elif what == 5:
        body += b"\x00" * header[name]["data_offsets"][1]
        header[choose.choice(("extra", "../x", "pending", name))] = dict(header[name])
    elif what == 6:
        other = choose.choice(sorted(set(header) - {"__metadata__"}))
        header[name], header[other] = header[other], header[name]
    elif what == 7:
        encoded = spoil_json(header, choose)
        return struct.pack("<Q", len(encoded)) + encoded + body
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + body


def _retyped(tensor: dict[str, Any], choose: Random) -> dict[str, Any]:
    """The same bytes as another type of the same length, in another shape, or with numbers that are all bits."""
    sizes = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "U8": 1, "BOOL": 1, "I8": 1}
    size = tensor["data_offsets"][1] - tensor["data_offsets"][0]
    kind = choose.choice([name for name, width in sizes.items() if size % width == 0])
    count = size // sizes[kind]
    return tensor | {"dtype": kind, "shape": choose.choice(([count], [1, count], [count, 1], [], [0, count], [2**40]))}


def spoil_lines(data: bytes, choose: Random) -> bytes:
    """A text with lines that are gone, doubled, swapped, strange, or whose fields have changed places."""
    lines = data.split(b"\n")
    for _ in range(choose.choice((1, 1, 3))):
        place = choose.randrange(len(lines))
        what = choose.randrange(7)
        if what == 0:
            lines[place] = choose.choice(LINES).encode("utf-8", "surrogatepass")
        elif what == 1 and len(lines) > 1:
            del lines[place]
        elif what == 2:
            lines.insert(place, choose.choice(lines))
        elif what == 3:
            mark = b"\t" if b"\t" in lines[place] else b","
            fields = lines[place].split(mark)
            choose.shuffle(fields)
            lines[place] = mark.join(fields)
        elif what == 4:
            mark = b"\t" if b"\t" in lines[place] else b","
            fields = lines[place].split(mark)
            fields[choose.randrange(len(fields))] = str(choose.choice(STRANGE)).encode("utf-8", "surrogatepass")
            lines[place] = mark.join(fields)
        elif what == 5:
            lines[place] = choose.choice(LINES).encode("utf-8", "surrogatepass") + lines[place]
        else:
            return spoil_bytes(b"\n".join(lines), choose)
    return b"\n".join(lines)


def spoil_packed(data: bytes, choose: Random, bomb: int = BOMB) -> bytes:
    """An xz file that is damaged, holds something else, or unpacks into far more than it says."""
    what = choose.randrange(4)
    if what == 0:
        return spoil_bytes(data, choose)
    if what == 1 and choose.randrange(8) == 0:
        return xz_bomb(bomb)
    if what == 2:
        return data + lzma.compress(b"more")
    return lzma.compress(spoil_bytes(lzma.decompress(data), choose), preset=0)


@functools.cache
def xz_bomb(size: int) -> bytes:
    """Zeros, packed, a block at a time."""
    packer = lzma.LZMACompressor(preset=0)
    block = bytes(1 << 20)
    return b"".join([packer.compress(block) for _ in range(size >> 20)] + [packer.flush()])


@functools.cache
def gzip_bomb(size: int, line: bytes = b"\x00") -> bytes:
    """The same few bytes without end, packed; without a line break they are one line."""
    sink, block = io.BytesIO(), (line * ((1 << 20) // len(line) + 1))[: 1 << 20]
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=1) as packed:
        for _ in range(size >> 20):
            packed.write(block)
    return sink.getvalue()


def archive(files: dict[str, bytes], choose: Random) -> bytes:
    """A zip or tar of these files, among which may be paths that lead outside, links, devices and doubles."""
    strange = ("../outside.txt", "/tmp/outside.txt", "a/../../outside.txt", "a\\..\\b", "c:x", "", "train.txt", "a//b")
    sink, extra = io.BytesIO(), choose.choice((None, *strange))
    if choose.randrange(2):
        with zipfile.ZipFile(sink, "w", choose.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as zipped:
            for name, data in files.items():
                zipped.writestr(name, data)
            if extra is not None:
                zipped.writestr(zipfile.ZipInfo(extra), b"x")
    else:
        with tarfile.open(fileobj=sink, mode=choose.choice(("w", "w:gz"))) as tar:
            for name, data in files.items():
                _add(tar, name, data, tarfile.REGTYPE, "")
            if extra is not None:
                kind = choose.choice(
                    (tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
                )
                _add(tar, extra or "x", b"x", kind, choose.choice(("/etc/passwd", "../..", "train.txt")))
    data = sink.getvalue()
    return spoil_bytes(data, choose) if choose.randrange(2) else data


def _add(tar: tarfile.TarFile, name: str, data: bytes, kind: bytes, target: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    tar.addfile(info, io.BytesIO(data))


def relink(path: Path, choose: Random) -> None:
    """Put something in a file's place that is none: a link to elsewhere or to itself, a folder, a pipe."""
    path.unlink()
    what = choose.randrange(5)
    if what == 0:
        path.symlink_to("/etc/passwd")
    elif what == 1:
        path.symlink_to(path.name)
    elif what == 2:
        path.mkdir()
    elif what == 3:
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
