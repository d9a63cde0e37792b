# SPDX-License-Identifier: Apache-2.0
"""SLM adapter packages ADP1, ASP1 and ALR1: an independent writer, reader and application of src/formats/slm_adapter/README.md.

Owns: the 128-byte header with the base's identity, the 72-byte entries, the payloads, both checksums, the match with a
base model and the fused tensors. `read` and `apply` raise ValueError with one sentence on whatever the page forbids.
"""
import struct

import numpy as np

import slm

HEADER = struct.Struct("<4s5I9Q32s")
HEADER_FIELDS = ("magic", "version", "header_length", "entry_count", "base_flags", "base_tensor_count",
                 "base_parameter_count", "base_tensor_layout_checksum", "base_tokenizer_checksum",
                 "base_directory_identity", "directory_offset", "data_offset", "file_size", "payload_checksum",
                 "head_checksum", "reserved")
FIELD_AT = dict(zip(HEADER_FIELDS, (*range(0, 24, 4), *range(24, 104, 8))))
IDENTITY = HEADER_FIELDS[4:10]
ENTRY = struct.Struct("<QII4I5Q")
KINDS = ("ADP1", "ASP1", "ALR1")
need = slm.need


def identity(base_path):
    """The six identities of a base model, by the header's field names."""
    return identity_of(slm.read(base_path))


def identity_of(base):
    return dict(zip(IDENTITY, (base["header"]["flags"], len(base["tensors"]), base["parameter_count"],
                               base["layout_checksum"], base["tokenizer_checksum"], base["directory_identity"])))


# ------------------------------------------------------------------------------------------------------ writing

def build(kind, base, entries):
    """The bytes of a package. base: of `identity`; entries: (name or hash, dims, first, second).

    ADP1: first = the delta, second = None. ASP1: first = element numbers, second = their deltas.
    ALR1: first = A [rows, rank], second = B [rank, columns]. Nothing is checked.
    """
    data_offset = position = slm.align(HEADER.size + ENTRY.size * len(entries))
    table, payloads = b"", []
    for name, dims, first, second in entries:
        first = np.ascontiguousarray(first, "<u8" if kind == "ASP1" else "<f4")
        count = first.shape[-1] if kind == "ALR1" else first.size
        places = []
        for part in (first, None if second is None else np.ascontiguousarray(second, "<f4")):
            if part is None:
                places += [0, 0]
                continue
            position = slm.align(position)
            payloads.append((position, part.tobytes()))
            places += [position, part.nbytes]
            position += part.nbytes
        table += ENTRY.pack(name if isinstance(name, int) else slm.fnv1a64(name), len(dims), 0,
                            *dims, *(0,) * (4 - len(dims)), count, *places)
    out = bytearray(slm.align(position))
    HEADER.pack_into(out, 0, kind.encode(), 1, HEADER.size, len(entries), *(base[key] for key in IDENTITY),
                     HEADER.size, data_offset, len(out), 0, 0, bytes(32))
    out[HEADER.size:HEADER.size + len(table)] = table
    for start, raw in payloads:
        out[start:start + len(raw)] = raw
    return reseal(bytes(out))


def reseal(data):
    """The same bytes with the payload's and the head's checksum computed anew."""
    out, start = bytearray(data), struct.unpack_from("<Q", data, 64)[0]
    struct.pack_into("<Q", out, 80, slm.checksum(bytes(out[start:])))
    struct.pack_into("<Q", out, 88, head_checksum(bytes(out[:start])))
    return bytes(out)


def head_checksum(head):
    return slm.checksum(head[:88] + bytes(8) + head[96:])


def write(path, kind, base, entries):
    """Write a package (see `build`) and return its bytes."""
    data = build(kind, base, entries)
    with open(path, "wb") as out:
        out.write(data)
    return data


# ------------------------------------------------------------------------------------------------------ reading

def parse(data):
    """The parts of a package's bytes; see `read`."""
    warnings = []
    need(len(data) >= HEADER.size, "The package is shorter than its 128-byte header.")
    h = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
    kind = h["magic"].decode("latin-1")
    need(kind in KINDS, "The package's magic is none of ADP1, ASP1, ALR1.")
    need(h["version"] == 1, "The package's version is not 1.")
    need(h["header_length"] == HEADER.size, "The package's header_length is not 128.")
    need(h["entry_count"] >= 1, "The package has no entries.")
    need(h["directory_offset"] == HEADER.size, "The package's directory_offset is not 128.")
    need(h["data_offset"] == slm.align(HEADER.size + ENTRY.size * h["entry_count"]),
         "data_offset is not the first multiple of 64 at or after the directory's end.")
    need(h["file_size"] == len(data), "file_size is not the length of the package.")
    need(len(data) % 64 == 0, "The package does not end on a multiple of 64.")
    need(h["data_offset"] <= len(data), "data_offset passes the package.")
    need(h["head_checksum"] == head_checksum(data[:h["data_offset"]]), "The head checksum does not match.")
    need(h["payload_checksum"] == slm.checksum(data[h["data_offset"]:]), "The payload checksum does not match.")
    if any(h["reserved"]):
        warnings.append("The header's reserved bytes are not zero.")
    ranges, entries, seen = [(0, HEADER.size + ENTRY.size * h["entry_count"])], [], set()
    for row in ENTRY.iter_unpack(data[HEADER.size:ranges[0][1]]):
        entry = read_entry(data, kind, h["data_offset"], row, ranges, warnings)
        need(entry["name_hash"] not in seen, f"Two entries have the name hash {entry['name_hash']:016x}.")
        seen.add(entry["name_hash"])
        entries.append(entry)
    reach, covered = 0, None
    for start, stop in sorted(ranges) + [(len(data), len(data))]:
        if start < reach and (start, stop) != covered:
            warnings.append("Two payloads overlap in part.")
        elif any(data[reach:start]):
            warnings.append("The bytes between payloads are not zero.")
        if stop >= reach:
            reach, covered = stop, (start, stop)
    return {"kind": kind, "header": h, "entries": entries, "identity": {key: h[key] for key in IDENTITY},
            "warnings": warnings}


def read_entry(data, kind, data_offset, row, ranges, warnings):
    name_hash, rank, reserved, *dims, count, first_at, first_length, second_at, second_length = row
    what = f"The entry {name_hash:016x}"
    need(1 <= rank <= 4, f"{what} has rank {rank}, not 1 to 4.")
    need(all(dims[:rank]), f"{what} has a dimension of 0.")
    need(not any(dims[rank:]), f"{what} has a nonzero dimension past its rank.")
    if reserved:
        warnings.append(f"{what} has a nonzero reserved field.")
    dims = tuple(dims[:rank])
    elements, (rows, columns) = slm.product(dims), slm.rows_columns(dims)
    if kind == "ADP1":
        need(count == elements, f"{what} counts other than its elements.")
        wanted = (elements * 4, 0)
        need(second_at == 0 and second_length == 0, f"{what} is dense and has a second payload.")
    elif kind == "ASP1":
        need(1 <= count <= elements, f"{what} counts no deltas, or more than it has elements.")
        wanted = (count * 8, count * 4)
    else:
        need(1 <= count <= min(rows, columns), f"{what} has an inner rank that its rows and columns do not allow.")
        wanted = (rows * count * 4, count * columns * 4)
    parts = []
    for start, length, exact in ((first_at, first_length, wanted[0]), (second_at, second_length, wanted[1])):
        if not exact:
            continue
        need(length == exact, f"{what} has a payload of the wrong length.")
        need(start % 64 == 0, f"{what} has a payload off the multiples of 64.")
        need(start >= data_offset, f"{what} has a payload before data_offset.")
        need(start + length <= len(data), f"{what} has a payload that passes the package.")
        ranges.append((start, start + length))
        parts.append(data[start:start + length])
    if kind == "ASP1":
        places = np.frombuffer(parts[0], "<u8")
        need(bool((places[1:] > places[:-1]).all()), f"{what} has element numbers that do not ascend strictly.")
        need(int(places[-1]) < elements, f"{what} has an element number past its elements.")
        floats = [parts[1]]
    else:
        places, floats = None, parts
    arrays = [np.frombuffer(part, "<f4") for part in floats]
    need(all(bool(np.isfinite(array).all()) for array in arrays), f"{what} has a value that is not finite.")
    out = {"name_hash": name_hash, "dims": dims, "count": count}
    if kind == "ADP1":
        out["delta"] = arrays[0].reshape(dims)
    elif kind == "ASP1":
        out["places"], out["delta"] = places, arrays[0]
    else:
        out["a"], out["b"] = arrays[0].reshape(rows, count), arrays[1].reshape(count, columns)
    return out


def read(path):
    """A dict of kind, header, identity, entries (arrays in `delta`, `places`, `a`, `b`) and warnings."""
    with open(path, "rb") as file:
        return parse(file.read())


# ----------------------------------------------------------------------------------------------------- applying

def low_rank(a, b):
    """A x B summed in f64 over the inner rank in ascending order, rounded once to f32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float64)
    for k in range(a.shape[1]):
        total += a[:, k, None].astype(np.float64) * b[None, k, :].astype(np.float64)
    with np.errstate(over="ignore"):
        return total.astype(np.float32)


def fuse(array, kind, entry):
    """One tensor's f32 values with one entry added."""
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "ADP1":
            return array + entry["delta"]
        if kind == "ALR1":
            return array + low_rank(entry["a"], entry["b"]).reshape(array.shape)
        flat = array.reshape(-1).copy()
        flat[entry["places"].astype(np.int64)] += entry["delta"]
        return flat.reshape(array.shape)


def apply_to(base, packages):
    """The base's entries (of `slm.read`), those that a package names replaced by f32 entries; the base is unchanged."""
    own = identity_of(base)
    place = {entry["name_hash"]: number for number, entry in enumerate(base["tensors"])}
    for package in packages:
        for key in IDENTITY:
            need(package["identity"][key] == own[key], f"The package's {key} is not that of the base model.")
        for entry in package["entries"]:
            need(entry["name_hash"] in place, f"The base model has no tensor {entry['name_hash']:016x}.")
            need(entry["dims"] == base["tensors"][place[entry["name_hash"]]]["dims"],
                 f"The entry {entry['name_hash']:016x} has other dims than the base's tensor.")
    out = list(base["tensors"])
    for package in packages:
        for entry in package["entries"]:
            number = place[entry["name_hash"]]
            old = out[number]
            fused = fuse(slm.values(old), package["kind"], entry)
            need(bool(np.isfinite(fused).all()), f"The tensor {old['name']} gets a value that is not finite.")
            out[number] = {**slm.pack(old["name_hash"], fused), "name": old["name"]}
    return out


def apply(base_path, *package_paths):
    """The fused entries of a base model and packages in the order given; `slm.build` and `slm.values` take them."""
    return apply_to(slm.read(base_path), [read(path) for path in package_paths])
