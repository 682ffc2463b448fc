"""Corrupts files, blindly or with valid structure and checksums."""

from __future__ import annotations

import json
import random
import struct
import zlib
from typing import Any

from campaigns._files.images import chunks_of, png_of
from retrograde.files.checked_json import dump_with_checksum, json_checksum

_NUMBERS = (0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, -(2**31), 2**53, 2**63, 2**64, 10**30)


def corrupt(rng: random.Random, name: str, data: bytes, canary: str) -> tuple[bytes, str]:
    """Returns a corrupt file and a description. Code in the file would create the file `canary`."""
    if name.endswith((".json", ".ipynb")) and rng.random() < 0.6:
        return _json(rng, data, canary)
    if name.endswith(".safetensors") and rng.random() < 0.5:
        return _tensors(rng, data, canary)
    if name.endswith(".png") and rng.random() < 0.5:
        return _png(rng, data)
    if name.endswith(".zlib") and rng.random() < 0.3:
        inside, how = _bytes(rng, zlib.decompress(data))
        return zlib.compress(inside), f"inside: {how}"
    return _bytes(rng, data)


# Bytes


def _bytes(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    ways = (_flip, _set, _cut, _insert, _delete, _copy, _number, _fill)
    chosen = [rng.choice(ways) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
    for way in chosen:
        data = way(rng, data) if data else rng.randbytes(rng.randrange(20))
    return data, ", ".join(way.__name__[1:] for way in chosen)


def _offset(rng: random.Random, data: bytes) -> int:
    """Returns a position in the file, in half of the cases near the header."""
    return rng.randrange(min(len(data), 64) if rng.random() < 0.5 else len(data))


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 10))):
        changed[_offset(rng, data)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set(rng: random.Random, data: bytes) -> bytes:
    offset = _offset(rng, data)
    return data[:offset] + bytes([rng.choice((0, 1, 127, 128, 255))]) + data[offset + 1 :]


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def _insert(rng: random.Random, data: bytes) -> bytes:
    offset = _offset(rng, data)
    return data[:offset] + rng.randbytes(rng.choice((1, 4, 1000))) + data[offset:]


def _delete(rng: random.Random, data: bytes) -> bytes:
    offset = _offset(rng, data)
    return data[:offset] + data[offset + rng.choice((1, 4, 100)) :]


def _copy(rng: random.Random, data: bytes) -> bytes:
    """Copies a part of the file to another position, sometimes many times."""
    start, offset = _offset(rng, data), _offset(rng, data)
    part = data[start : start + rng.choice((1, 8, 64, 1024))] * rng.choice((1, 1, 3, 100))
    return data[:offset] + part + data[offset + (len(part) if rng.random() < 0.5 else 0) :]


def _number(rng: random.Random, data: bytes) -> bytes:
    offset, kind = _offset(rng, data), rng.choice(("<I", ">I", "<H", ">H", "<Q"))
    size = struct.calcsize(kind)
    number = struct.pack(kind, rng.choice(_NUMBERS) % (1 << 8 * size))
    return data[:offset] + number + data[offset + size :]


def _fill(rng: random.Random, data: bytes) -> bytes:
    offset, count = _offset(rng, data), rng.choice((4, 64, 1024))
    return data[:offset] + bytes([rng.choice((0, 255))]) * count + data[offset + count :]


# Structure


def _png(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    """Corrupts one chunk, or the lines in it, and updates the checksums."""
    chunks = chunks_of(data)
    index = rng.randrange(len(chunks))
    name, content = chunks[index]
    if name == b"IDAT" and rng.random() < 0.7:
        inside, how = _bytes(rng, zlib.decompress(content))
        content = zlib.compress(inside)
    else:
        content, how = _bytes(rng, content)
    chunks[index] = name, content
    if rng.random() < 0.2:
        chunks.insert(rng.randrange(len(chunks) + 1), rng.choice(chunks))
    return png_of(chunks), f"{name!r}, checksums right: {how}"


def _json(rng: random.Random, data: bytes, canary: str) -> tuple[bytes, str]:
    content = json.loads(data)
    how = replace_leaf(rng, content, canary)
    has_checksum = isinstance(content, dict) and "checksum" in content
    if has_checksum and "nested" not in how and rng.random() < 0.8:
        return dump_with_checksum(content), f"{how}, checksum right"
    return _dump_json(content), how


def _dump_json(content: Any) -> bytes:
    """Returns JSON. A marker is replaced by nesting that `json` cannot write."""
    text = json.dumps(content)
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        marker = json.dumps(f"nested {opening}")
        text = text.replace(marker, opening * 100_000 + "1" + closing * 100_000)
    return text.encode()


def _tensors(rng: random.Random, data: bytes, canary: str) -> tuple[bytes, str]:
    """Corrupts the header of a safetensors file and updates its checksum."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    metadata = header["__metadata__"]
    if rng.random() < 0.6:
        part = rng.choice(("description", "encoded", "checksums"))
        content = json.loads(metadata[part])
        holder = {"": content}
        how = f"{part}: {replace_leaf(rng, holder, canary)}, checksum right"
        metadata[part] = _dump_json(holder[""]).decode() if holder else ""
        names = ("kind", "version", "description", "encoded", "checksums")
        metadata["checksum"] = str(json_checksum({name: metadata[name] for name in names}))
    else:
        how = f"header: {replace_leaf(rng, header, canary)}"
    written = _dump_json(header)
    return struct.pack("<Q", len(written)) + written + data[8 + length :], how


def replace_leaf(rng: random.Random, content: Any, canary: str) -> str:
    """Replaces a random part of nested lists and dicts. Returns a description of the change."""
    paths = list(_paths(content, ()))
    if not paths:
        return "nothing to replace"
    path = rng.choice(paths)
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    value = _value(rng, holder[path[-1]], canary)
    if rng.random() < 0.1:
        del holder[path[-1]]
        return f"{path} deleted"
    holder[path[-1]] = value
    return f"{path} = {value!r:.80}"


def _paths(content: Any, path: tuple) -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, part in items:
        yield (*path, key)
        if isinstance(part, (dict, list)):
            yield from _paths(part, (*path, key))


def _value(rng: random.Random, old: Any, canary: str) -> Any:
    code = f"open({canary!r}, 'w').write('x')"
    return rng.choice(
        (
            lambda: rng.choice(_NUMBERS),
            lambda: rng.choice(
                (
                    code,
                    f"[{code}, 1][1]",
                    f"__import__('os').mkdir({canary!r})",
                    f"{{{code}}}",
                )
            ),
            lambda: rng.choice((None, True, 1.5, float("nan"), float("inf"), "", "a\0b", "\ud800")),
            lambda: rng.choice(([], {}, [[]], [1, "a", None], {"a": 1}, {"": []})),
            lambda: rng.choice(("nested [", 'nested {"a":')),
            lambda: f"../../../../{canary}",
            lambda: [old] * rng.choice((0, 2, 1000)),
            lambda: {"list": [old], "tuple": old},
            lambda: old + 1 if type(old) is int else -1,
            lambda: old * 1000 if isinstance(old, str) else str(old),
        )
    )()
