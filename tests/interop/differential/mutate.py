# SPDX-License-Identifier: Apache-2.0
"""Changes files in ways that two readers may understand differently: each format by its own grammar, and any bytes. Everything is drawn from
one random.Random, so a seed names a file."""
import pickletools
import struct
import zlib

NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
           2**53, 2**63 - 1, 2**63, 2**64 - 1]


def change_bytes(draw, data, begin=0, end=None):
    """One small change of any bytes between two offsets."""
    data = bytearray(data)
    end = len(data) if end is None else min(end, len(data))
    at = draw.randrange(begin, max(end, begin + 1))
    action = draw.randrange(8)
    if action == 0 and at < len(data):
        data[at] ^= 1 << draw.randrange(8)
    elif action == 1 and at < len(data):
        data[at] = draw.choice([0, 1, 2, 0x0A, 0x20, 0x2E, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    elif action == 2:
        width = draw.choice([1, 2, 4, 8])
        data[at:at + width] = (draw.choice(NUMBERS) % 256**width).to_bytes(width, draw.choice(["little", "little", "big"]))
    elif action == 3:
        width = draw.choice([1, 2, 4, 8])
        number = int.from_bytes(data[at:at + width], "little") + draw.choice([-8, -4, -2, -1, 1, 2, 4, 8])
        data[at:at + width] = (number % 256**width).to_bytes(width, "little")
    elif action == 4:
        size = draw.choice([1, 1, 2, 4, 8, 16])
        other = draw.randrange(begin, max(end, begin + 1))
        data[at:at + size] = data[other:other + size]
    elif action == 5:
        del data[at:at + draw.choice([1, 1, 2, 4, 8])]
    elif action == 6:
        data[at:at] = draw.choice([b"\0", b" ", draw.randbytes(draw.choice([1, 2, 4, 8])), bytes(data[at:at + 16])])
    else:
        data += draw.choice([b"\0", b" ", b"\n", draw.randbytes(9), bytes(data[-30:])])
    return bytes(data)


def other_case(draw, text):
    letters = [i for i, c in enumerate(text) if chr(c).isalpha()]
    if not letters:
        return text
    out = bytearray(text)
    for i in draw.sample(letters, draw.choice([1, len(letters)])):
        out[i:i + 1] = bytes(out[i:i + 1]).swapcase()
    return bytes(out)


# --------------------------------------------------------------------------------------------------------------- zip archives


class Member:
    """A member as it is written, with what its two headers say where that is not the truth."""
    def __init__(self, name, data, method=0):
        self.name, self.data, self.method = name, data, method
        self.local, self.central, self.descriptor, self.gap = {}, {}, None, b""

    def copy(self):
        other = Member(self.name, self.data, self.method)
        other.local, other.central, other.descriptor, other.gap = dict(self.local), dict(self.central), self.descriptor, self.gap
        return other


def write_zip(members, prefix=b"", comment=b"", suffix=b"", directory=None, end=None, aligned=False):
    """`directory`: which members are in it, in which order; `end`: fields of the end record that are not the truth."""
    out, entries = bytearray(prefix), []
    for member in members:
        stored = member.data
        if member.method == 8:
            coder = zlib.compressobj(6, zlib.DEFLATED, -15)
            stored = coder.compress(member.data) + coder.flush()
        truth = {"name": member.name, "version": 20, "flags": 0, "method": member.method, "time": 0, "date": 33, "crc": zlib.crc32(member.data),
                 "stored": len(stored), "size": len(member.data), "extra": b"", "made": 20, "comment": b"", "disk": 0, "internal": 0, "external": 0, "shift": 0}
        central = {**truth, **member.central}
        local = {**truth, **member.local}
        if member.descriptor:
            local["flags"] |= 8
            central["flags"] |= 8
            if "zero" in member.descriptor:
                local.update({"crc": 0, "stored": 0, "size": 0})
        out += member.gap
        if aligned and not local["extra"]:
            local["extra"] = b"FB" + struct.pack("<H", (at := (-(len(out) + 30 + len(local["name"]) + 4)) % 64)) + b"Z" * at
        central["offset"] = len(out) - (len(prefix) if member.central.get("from_prefix") else 0) + central["shift"]
        out += struct.pack("<IHHHHHIIIHH", 0x04034B50, local["version"], local["flags"], local["method"], local["time"], local["date"], local["crc"] % 2**32,
                           local["stored"] % 2**32, local["size"] % 2**32, len(local["name"]), len(local["extra"])) + local["name"] + local["extra"] + stored
        if member.descriptor:
            wide = "Q" if "wide" in member.descriptor else "I"
            out += (b"PK\x07\x08" if "signed" in member.descriptor else b"") + struct.pack(f"<I{wide}{wide}", truth["crc"], len(stored), len(member.data))
        entries.append(struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, central["made"], central["version"], central["flags"], central["method"], central["time"],
                                   central["date"], central["crc"] % 2**32, central["stored"] % 2**32, central["size"] % 2**32, len(central["name"]),
                                   len(central["extra"]), len(central["comment"]), central["disk"], central["internal"], central["external"] % 2**32,
                                   central["offset"] % 2**32) + central["name"] + central["extra"] + central["comment"])
    at = len(out)
    order = range(len(entries)) if directory is None else directory
    out += b"".join(entries[i] for i in order)
    fields = {"disk": 0, "first": 0, "here": len(order), "all": len(order), "size": len(out) - at, "at": at, "length": len(comment), **(end or {})}
    out += struct.pack("<IHHHHIIH", 0x06054B50, fields["disk"], fields["first"], fields["here"] % 65536, fields["all"] % 65536, fields["size"] % 2**32,
                       fields["at"] % 2**32, fields["length"] % 65536) + comment
    return bytes(out + suffix)


def read_zip(data):
    """The members of an archive without faults."""
    import io
    import zipfile
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [Member(about.filename.encode(), archive.read(about), about.compress_type) for about in archive.infolist()]


def like_name(draw, name):
    """Another spelling that some reader takes for the same, or for another."""
    stem = name.rpartition(b".")
    return draw.choice([other_case(draw, name), name + b"/", name + b"\0", name + b"\0x", b"./" + name, b"/" + name, name.replace(b"/", b"\\"), name + b" ",
                        name.replace(b"/", b"//", 1), name + b".npy", stem[0] or name, b"x/../" + name, name + b"\xc3\xa9", name + b"\xe9", name + b"e\xcc\x81",
                        b"\xef\xbb\xbf" + name, name.upper(), name.lower(), name + b":x", name[:-1], name + b"\x7f", name.replace(b"a", b"\xd0\xb0", 1)])


def other_content(draw, data):
    """Content of the same kind with other values, of the same or another size."""
    if len(data) > 8 and draw.random() < 0.7:
        out = bytearray(data)
        for _ in range(3):
            out[-draw.randrange(1, min(len(data), 16) + 1)] ^= 1 << draw.randrange(8)
        return bytes(out)
    return change_bytes(draw, data) if data else b"\1"


def extra_field(draw, member):
    unicode_path = b"\1" + struct.pack("<I", zlib.crc32(member.name)) + like_name(draw, member.name)
    wide = struct.pack("<Q", draw.choice([len(member.data), len(member.data) + 1, 0, 8]))
    kind, content = draw.choice([(0x7075, unicode_path), (0x7075, unicode_path), (1, wide), (1, wide * 2), (1, wide * 3), (1, b""), (0x5455, b"\1\0\0\0\0"), (0x9901, b"\2\0AE\3\0\0"),
                                 (0xD935, b"\0" * 5), (0x6375, b"\1\0\0\0\0text")])
    return struct.pack("<HH", kind, len(content)) + content


def change_zip(draw, members, content_of):
    """`members` changed in place or replaced; returns the keyword arguments of write_zip. `content_of(draw, member)`: another content for it."""
    how = {}
    for _ in range(draw.choice([1, 1, 1, 2, 2, 3])):
        at = draw.randrange(len(members))
        member, action = members[at], draw.randrange(22)
        if action == 0:  # a twin under another spelling, with other content
            twin = member.copy()
            twin.name = like_name(draw, twin.name)
            twin.data = other_content(draw, twin.data)
            members.insert(draw.choice([at, at + 1, len(members)]), twin)
        elif action == 1:  # a twin under the same name
            twin = member.copy()
            twin.data = other_content(draw, twin.data)
            members.insert(draw.choice([at, at + 1, len(members)]), twin)
        elif action == 2:
            member.name = like_name(draw, member.name)
        elif action == 3:  # one of the headers says another name
            draw.choice([member.local, member.central])["name"] = like_name(draw, member.name)
        elif action == 4:
            member.central["external"] = draw.choice([0x10, 0x10 | 0o40755 << 16, 0o120777 << 16, 0o100644 << 16, 0x30, 1, 8])
            member.central["made"] = draw.choice([20, 0x0314, 0x0A14, 0x1314])
        elif action == 5:
            member.descriptor = draw.choice(["signed", "signed zero", "zero", "unsigned", "signed zero wide", "wide zero"])
        elif action == 6:
            which = draw.choice([member.local, member.central])
            which[draw.choice(["crc", "stored", "size"])] = draw.choice([0, 1, len(member.data), len(member.data) - 1, len(member.data) + 1, 2**32 - 1])
        elif action == 7:
            for which in draw.choice([[member.local], [member.central], [member.local, member.central]]):
                which["extra"] = which.get("extra", b"") + extra_field(draw, member)
        elif action == 8:
            for which in draw.choice([[member.local], [member.central], [member.local, member.central]]):
                which["flags"] = draw.choice([0x800, 1, 2, 8, 0x20, 0x40, 0x2000, 0x808])
        elif action == 9:
            member.method = 8 - member.method if member.method in (0, 8) else 0
        elif action == 10:
            for which in draw.choice([[member.local], [member.central], [member.local, member.central]]):
                which["method"] = draw.choice([0, 8, 9, 12, 14, 93, 99])
        elif action == 11:
            how["prefix"] = draw.choice([b"MZ" + b"\0" * 30, b"\0", b"cos\nsystem\n(S'true'\ntR.", b"(K\1l.", b"PK\3\4", draw.randbytes(40), b"#!/bin/sh\n"])
            if draw.random() < 0.5:
                for each in members:
                    each.central["from_prefix"] = True
                how["end"] = {"at": -len(how["prefix"])} if draw.random() < 0.3 else how.get("end")
        elif action == 12:
            how["comment"] = draw.choice([b"c", b"PK\5\6" + b"\0" * 18, write_zip([Member(member.name, other_content(draw, member.data))]), b"\0" * 70])
        elif action == 13:
            how["suffix"] = draw.choice([b"\0", b"\n", b"PK\5\6" + b"\0" * 18, b"\0" * 100, write_zip([Member(member.name, other_content(draw, member.data))])])
        elif action == 14:
            order = list(range(len(members)))
            draw.shuffle(order)
            how["directory"] = draw.choice([order, order[:-1], [*order, draw.choice(order)], sorted(order, reverse=True)])
        elif action == 15:
            how["end"] = {draw.choice(["here", "all", "disk", "first", "size", "at", "length"]): draw.choice([0, 1, 2, len(members) - 1, len(members) + 1, 65535])}
        elif action == 16:
            member.gap = draw.choice([b"\0" * 5, b"PK\1\2", draw.randbytes(50)])
        elif action == 17:
            members.insert(draw.randrange(len(members) + 1), Member(draw.choice([b"x", b"x/", b"archive/", b"archive/x", member.name + b"/x", b"", b".data/serialization_id"]),
                                                                    draw.choice([b"", b"text", member.data])))
        elif action == 18:
            member.central["shift"] = draw.choice([1, -1, 4, 30, 64])
        elif action == 19:
            for which in draw.choice([[member.local], [member.central]]):
                which["version"] = draw.choice([0, 10, 45, 63, 255])
        elif action == 20 and len(members) > 1:
            members.pop(at)
        else:
            member.data = content_of(draw, member)
        if "directory" in how:
            how["directory"] = [i for i in how["directory"] if i < len(members)]
    return {key: value for key, value in how.items() if value is not None}


# -------------------------------------------------------------------------------------------------------------------- pickles


def opcodes(data):
    """The opcodes of a pickle as bytes each; None if it is broken."""
    try:
        starts = [at for _, _, at in pickletools.genops(data)]
    except Exception:
        return None
    end = len(data) if not starts else starts[-1] + 1
    return [data[a:b] for a, b in zip(starts, [*starts[1:], end])]


NAMES = [("os", "system"), ("posix", "system"), ("builtins", "eval"), ("__builtin__", "eval"), ("builtins", "getattr"), ("collections", "OrderedDict"), ("builtins", "set"),
         ("subprocess", "Popen"), ("torch", "FloatStorage"), ("torch._utils", "_rebuild_tensor_v2"), ("mine", "Thing"), ("argparse", "Namespace"), ("builtins", "map"),
         ("numpy.core.multiarray", "scalar"), ("numpy", "dtype"), ("functools", "partial"), ("torch.utils.benchmark", "Timer"), ("", ""), ("os\r", "system"), (" os", "system"),
         ("os", "system\r"), ("os.path", "join"), ("collections", "OrderedDict.__init__.__globals__"), ("_codecs", "encode"), ("copyreg", "_reconstructor"),
         ("pathlib", "PosixPath.write_text"), ("numpy", "ndarray.tofile"), ("o\u017f", "system")]


def global_ops(draw, module, name):
    """Ways to name a global."""
    m, n = module.encode(), name.encode()
    ways = [b"\x8c" + bytes([len(m)]) + m + b"\x94\x8c" + bytes([len(n)]) + n + b"\x94\x93",
            b"X" + struct.pack("<I", len(m)) + m + b"\x8c" + bytes([len(n)]) + n + b"\x93",
            b"V" + m + b"\nV" + n + b"\n\x93", b"\x8c" + bytes([len(n)]) + n + b"\x8c" + bytes([len(m)]) + m + b"0\x8c" + bytes([len(n)]) + n + b"00" + b"\x8c" +
            bytes([len(m)]) + m + b"\x8c" + bytes([len(n)]) + n + b"\x93"]
    if b"\n" not in m + n:
        ways += [b"c" + m + b"\n" + n + b"\n"] * 2 + [b"(i" + m + b"\n" + n + b"\n"]
    return draw.choice(ways)


def number_ops(draw):
    number = draw.choice([0, 1, -1, 2, 3, 5, 127, 255, 256, 65535, 2**31 - 1, -2**31])
    ways = [b"J" + struct.pack("<i", number), b"I%d\n" % number, b"L%dL\n" % number, b"L%d\n" % number, b"I01\n", b"I00\n", b"I %d\n" % number, b"I%d \n" % number, b"I+%d\n" % abs(number),
            b"I0%d\n" % abs(number), b"I1_0\n", b"I0x5\n", b"L0x5L\n", b"L1_0L\n", b"L0\n", b"L00L\n", b"F1_0.5\n", b"F 1.5\n", b"Fnan\n", b"F-inf\n", b"F1e400\n", b"F0x1p3\n", b"F1.\n", b"F.5\n",
            b"\x8a\x00", b"\x8a\x01\xff", b"\x8a\x02\xff\x00", b"\x8a\x03\x01\x00\x00", b"\x8b\x01\x00\x00\x00\x05", b"G" + struct.pack(">d", float(number)), b"I\xd9\xa1\n", b"I-0\n", b"L-0L\n", b"I01 \n", b"I001\n",
            b"I1\0\n", b"F1\0\n", b"L5LL\n", b"L5l\n", b"I1.0\n", b"I1L\n", b"F1\r\n", b"I1\r\n", b"L\n", b"I\n", b"F\n", b"Finfinity\n", b"F1e5\n", b"F\t2\n"]
    if 0 <= number < 256:
        ways.append(b"K" + bytes([number]))
    if 0 <= number < 65536:
        ways.append(b"M" + struct.pack("<H", number))
    return draw.choice(ways)


def text_ops(draw):
    text = draw.choice([b"w", b"a", b"", b"layer.0", b"\xc3\xa9", b"x" * 30, b"b'\\x41'", b"\xff", b"\xed\xa0\x80", b"a\\u0041b", b"a\\nb"])
    return draw.choice([b"\x8c" + bytes([len(text)]) + text, b"X" + struct.pack("<I", len(text)) + text, b"\x8d" + struct.pack("<Q", len(text)) + text, b"V" + text + b"\n",
                        b"U" + bytes([len(text)]) + text, b"T" + struct.pack("<I", len(text)) + text, b"S'" + text + b"'\n", b'S"' + text + b'"\n', b"S '" + text + b"' \n", b"S'a\\x41\\n\\\\\\'b'\n",
                        b"S'\\101\\u0041\\N{DIGIT ONE}'\n", b"Va\\u00e9\\U0001f980\\\\u0041\n", b"Va\\ud83e\\udd80\n", b"V\\u004\n", b"S'a'b'\n", b"S'\n", b"Sa\n", b"C" + bytes([len(text)]) + text,
                        b"B" + struct.pack("<I", len(text)) + text, b"\x8e" + struct.pack("<Q", len(text)) + text, b"\x96" + struct.pack("<Q", len(text)) + text,
                        b"S'\\400'\n", b"S'\\q'\n", b"S'\\\\'\n", b"V\xe9\n", b"V\\x41\n", b"V\\\\\n", b"S'a' \t\n", b"S'\\0'\n", b"V\\U00110000\n"])


def inner_pickle(draw):
    """A pickle in a byte string, that names something."""
    inner = b"\x80\x04" + global_ops(draw, *draw.choice(NAMES)) + b"(U\x04trueR."
    return draw.choice([b"B" + struct.pack("<I", len(inner)) + inner, b"X" + struct.pack("<I", len(inner)) + inner.decode("latin1").encode()[:len(inner)], inner])


SINGLE = [b"0", b"1", b"2", b"(", b"a", b"b", b"d", b"e", b"l", b"o", b"p0\n", b"q\x00", b"r\0\0\0\0", b"g0\n", b"h\x00", b"h\x01", b"j\0\0\0\0", b"s", b"t", b"u", b"}", b")", b"]", b"\x81", b"\x85", b"\x86",
          b"\x87", b"\x88", b"\x89", b"\x8f", b"\x90", b"\x91", b"\x92", b"\x94", b"N", b"R", b"Q", b"P0\n", b"\x82\x01", b"\x83\1\0", b"\x97", b"\x98", b".", b"I00\n", b"(K\1e", b"]N\x94a", b"q\xff", b"h\xff",
          b"p-1\n", b"g00\n", b"p 1\n", b"g 1\n", b"p1_0\n", b"g+1\n", b"p01\n", b"j\1\0\0\0", b"r\1\0\0\0"]


def change_pickle(draw, data):
    """A pickle with opcodes moved, dropped, added, spelled otherwise, or with frames that lie."""
    ops = opcodes(data)
    if not ops or len(ops) < 2:
        return change_bytes(draw, data)
    rest = data[sum(map(len, ops)):]
    for _ in range(draw.choice([1, 1, 1, 2, 2, 4])):
        at = draw.randrange(len(ops))
        action = draw.randrange(20)
        if action == 0:
            ops.pop(at)
        elif action == 1:
            ops.insert(at, ops[draw.randrange(len(ops))])
        elif action == 2 and at + 1 < len(ops):
            ops[at], ops[at + 1] = ops[at + 1], ops[at]
        elif action == 3:
            ops.insert(at, draw.choice(SINGLE))
        elif action == 4:  # a frame of any length anywhere: its end may be inside an argument, or past the pickle
            left = sum(map(len, ops[at:]))
            ops.insert(at, b"\x95" + struct.pack("<Q", draw.choice([0, 1, left, left - 1, left + 1, left + len(rest), draw.randrange(left + 2), 2**63, sum(map(len, ops[at:at + 3]))])))
        elif action == 5:  # frames that are there, of another length, or gone
            frames = [i for i, op in enumerate(ops) if op[:1] == b"\x95"]
            if frames:
                i = draw.choice(frames)
                length = struct.unpack("<Q", ops[i][1:])[0]
                ops[i:i + 1] = draw.choice([[], [b"\x95" + struct.pack("<Q", max(length + draw.choice([-9, -3, -2, -1, 1, 2, 9]), 0))]])
        elif action == 6:
            ops[0 if ops[0][:1] == b"\x80" and draw.random() < 0.8 else at] = b"\x80" + bytes([draw.choice([0, 1, 2, 3, 4, 5, 6, 255])])
        elif action == 7:  # memo games
            memo = [i for i, op in enumerate(ops) if op[:1] in b"pqrghj"]
            if memo:
                i = draw.choice(memo)
                where = draw.choice([0, 1, 2, 3, 4, 5, 8, 255])
                ops[i] = draw.choice([b"q" + bytes([where]), b"h" + bytes([where]), b"p%d\n" % where, b"g%d\n" % where, b"r" + struct.pack("<I", where), b"j" + struct.pack("<I", where),
                                      b"\x94", b"p%d \n" % where, b"g0%d\n" % where, b"r" + struct.pack("<I", 2**20 + where), b"j" + struct.pack("<I", 2**20 + where)])
        elif action == 8:
            names = [i for i, op in enumerate(ops) if op[:1] in b"c\x93i"]
            if names:
                i = draw.choice(names)
                if ops[i][:1] == b"c":
                    ops[i] = global_ops(draw, *draw.choice(NAMES)) if draw.random() < 0.7 else change_bytes(draw, ops[i])
                else:
                    ops.insert(i + 1, b"0" + global_ops(draw, *draw.choice(NAMES)))
        elif action == 9:
            ops.insert(at, global_ops(draw, *draw.choice(NAMES)) + draw.choice([b"0", b")R0", b"", b"(U\x04trueR0"]))
        elif action == 10:
            numbers = [i for i, op in enumerate(ops) if op[:1] in b"KMJILFG\x8a\x8b\x88\x89"]
            if numbers:
                ops[draw.choice(numbers)] = number_ops(draw)
        elif action == 11:
            texts = [i for i, op in enumerate(ops) if op[:1] in b"XU\x8cVSTCB\x8d"]
            if texts:
                ops[draw.choice(texts)] = text_ops(draw)
        elif action == 12:
            ops.insert(at, draw.choice([number_ops, text_ops])(draw) + draw.choice([b"0", b"0", b"\x940", b""]))
        elif action == 13:
            ops.insert(at, inner_pickle(draw) + b"0")
        elif action == 14:  # values set again, in the ways that there are
            ops.insert(max(len(ops) - 1, 0), draw.choice([text_ops(draw) + number_ops(draw) + b"s", b"(" + text_ops(draw) + number_ops(draw) + b"u", b"}b", b"(dN\x86b", b"N}" + text_ops(draw) + b"K\1s\x86b"]))
        elif action == 15:
            ops[at] = change_bytes(draw, ops[at])
        elif action == 16:  # one integer of another
            if len(ops[at]) > 1:
                ops[at] = ops[at][:1] + bytes([ops[at][1] ^ (1 << draw.randrange(8))]) + ops[at][2:]
        elif action == 17:  # everything in a container more, or out of one
            ops[-1:-1] = draw.choice([[b"\x85"], [b"]" + b"\x94"], [b"0N"], [b"2\x86"], [b"}\x8c\1k", b"K\1s"]])
        elif action == 18:
            rest += draw.choice([b"\x80\x04N.", b"\x80\x04" + global_ops(draw, *draw.choice(NAMES)) + b".", b"\0", b"N.", data])
        else:
            i, j = sorted((at, draw.randrange(len(ops))))
            ops[at:at] = ops[i:min(j, i + 6)]
    return b"".join(ops) + rest


# ------------------------------------------------------------------------------------------------------------- arrays of NumPy


def npy(descr, fortran, shape, data, version=(1, 0), header=None, pad=64):
    """An .npy file; `header`: the text, if it is not what NumPy writes."""
    text = header if header is not None else f"{{'descr': {descr!r}, 'fortran_order': {fortran!r}, 'shape': {tuple(shape)!r}, }}".encode("latin1")
    wide = version[0] > 1
    length = 8 + (4 if wide else 2)
    if pad:
        text = text + b" " * (-(length + len(text) + 1) % pad) + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<I" if wide else "<H", len(text) % (2**32 if wide else 2**16)) + text + data


DESCR = ["<f4", ">f4", "|f4", "=f4", "f4", "<f8", "<i4", ">i4", "<u2", "|b1", "|u1", "|i1", "<f2", "<c8", ">c16", "<i8", "b1", "?", "<?", "B", "<B", "<i1", ">u1", "|S4", "<U1", "<V4", "|V1", "<M8[s]", "O", "|O8", "float32",
         "<float32", "i", "d", "<d", "<l", "L", "f", "<f04", "<f 4", "<f4 ", "1<f4", "(2,)<f4", "2f4", "<f4,<f4", "<g", "<f16", "<e", "<F", ">D", "<c16", "<h", "<q", "b", "bool", "<b1", ">b1", "<x4", "", "f4\\x00", "single",
         "half", "<i4\\x00", "int", "uint", "<p", "<P", "<n", "N", "long", "q", ">?", "=b1", "|f8", "|i4", "|u2", "<e2", "<d8", "<F8", "<D16", "F", "D", "e", "H", "h", "I", "Q"]
SHAPES = ["()", "(6,)", "(2, 3)", "(3, 2)", "(1, 6)", "(6, 1)", "(0,)", "(2, 0)", "(2, 3,)", "(2,3)", "( 2 , 3 )", "(6)", "[2, 3]", "(2L, 3L)", "(2l,)", "(True, 6)", "(-1,)", "(0x6,)", "(0o6,)", "(06,)", "(6.0,)", "(1_0,)", "(2, 1, 3)",
          "(1, 2, 3, 1)", "(6,)\\\n", "(2, 3), ", "((2, 3))", "(2,\n3)", "(+6,)", "(6 ,)", "(3*2,)", "(2, 3, )", "(,)", "(2,,3)", "(00,)", "(0,-1)", "(4294967296, 0)", "(9223372036854775807, 0)", "(18446744073709551616, 0)"]
FLAGS = ["False", "True", "0", "1", "None", "'False'", "false", "(True)", "not True", "True ", "False or True"]


def header_text(draw):
    descr = draw.choice(DESCR) if draw.random() < 0.6 else "<f4"
    quote = draw.choice(["'", "'", "'", '"', "u'", "b'", "r'", "'''"])
    values = {"descr": quote + descr + quote.lstrip("ubr"), "fortran_order": draw.choice(FLAGS) if draw.random() < 0.5 else draw.choice(["False", "True"]),
              "shape": draw.choice(SHAPES) if draw.random() < 0.6 else draw.choice(["(2, 3)", "(6,)", "(3, 2)"])}
    if draw.random() < 0.07:
        values["descr"] = draw.choice(["[('a', '<f4')]", "[('a', '<f4'), ('b', '<i4')]", "('<f4', (2,))", "[('a', '<f4', (2,))]", "[('', '<f4')]", "'<' 'f4'", "'<f4'.lower()", "'\\x3cf4'", "'<f4'  ", "None", "('<f4',)", "[]", "'<f4', ",
                                       "[('', '|V4'), ('a', '<f4')]", "'''<f4'''"])
    items = list(values.items())
    if draw.random() < 0.2:
        draw.shuffle(items)
    if draw.random() < 0.12:
        items.append(draw.choice([("shape", "(1,)"), ("descr", "'<i4'"), ("fortran_order", "True"), ("extra", "1")]))
    if draw.random() < 0.05:
        items.pop(draw.randrange(len(items)))
    key = draw.choice(["'{}'", "'{}'", "'{}'", '"{}"', "u'{}'", " '{}' "])
    colon, comma, tail = draw.choice([": ", ": ", ":", " : "]), draw.choice([", ", ", ", ",", " ,  "]), draw.choice([", }", ", }", "}", ",}", ", } ", "}\n", "} # comment", "}\0", "};", "} {}", "}\\\n"])
    text = draw.choice(["{", "{", "{", " {", "({", "{ ", "\n{", "\t{", "\f{"]) + comma.join(key.format(k) + colon + v for k, v in items) + tail
    if text.startswith("({"):
        text += ")"
    return text.encode("latin1", "replace")


def change_npy(draw, data):
    content = data[-24:] if len(data) >= 24 else data
    tail = draw.choice([b"", b"", bytes(range(1, 200))])
    if draw.random() < 0.2:
        return change_bytes(draw, data, 0, 140)
    return npy(None, None, None, content + tail, draw.choice([(1, 0), (1, 0), (2, 0), (3, 0), (1, 1), (0, 0), (4, 0)]) if draw.random() < 0.3 else (1, 0), header_text(draw), draw.choice([64, 16, 0]))


def npy_of_objects(draw, pickled):
    """An array of objects, whose content is this pickle."""
    return npy("|O", False, draw.choice([(1,), (2,), ()]), pickled, (1, 0))


# ----------------------------------------------------------------------------------------------------------------- safetensors


def json_text(draw, text):
    """A JSON string, perhaps with escapes that it does not need."""
    out = '"'
    for c in text:
        way = draw.randrange(12)
        if way == 0 and ord(c) < 0x10000:
            out += f"\\u{ord(c):04x}" if draw.random() < 0.7 else f"\\u{ord(c):04X}"
        elif way == 1 and c == "/":
            out += "\\/"
        elif ord(c) < 32 or c in '"\\':
            out += {"\n": "\\n", '"': '\\"', "\\": "\\\\", "\t": "\\t"}.get(c, f"\\u{ord(c):04x}")
        else:
            out += c
    return out + '"'


TYPES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "BOOL": 1, "F64": 8, "I8": 1, "F8_E4M3": 1, "C64": 8, "U16": 2, "U32": 4, "U64": 8, "I16": 2, "I32": 4, "F8_E5M2": 1, "F8_E8M0": 1}


def safetensors(draw):
    """A file of a few tensors whose header is spelled, and sometimes wrong, in many ways."""
    names = draw.sample(["a", "b", "weight", "é", "e\u0301", "layer.0/x", "A", "", "\U0001f980", "q\"\\", "__metadata", "\u0000", "\u2028", "a "], draw.choice([1, 2, 3]))
    entries, at, payload = [], 0, b""
    for name in names:
        dtype = draw.choice(list(TYPES) if draw.random() < 0.9 else ["F4", "F6_E2M3", "f32", "F128", "I4", "F8_E4M3FNUZ", "C128"])
        shape = draw.choice([[], [1], [2], [2, 2], [0], [3, 0], [1, 1, 2], [4]])
        count = 1
        for d in shape:
            count *= d
        size = count * TYPES.get(dtype, 1)
        content = bytes(draw.randrange(2) for _ in range(size)) if dtype == "BOOL" and draw.random() < 0.8 else draw.randbytes(size)
        entries.append([name, dtype, shape, at, at + size])
        payload += content
        at += size
    if draw.random() < 0.2:
        draw.shuffle(entries)

    def number(n):
        if draw.random() < 0.97:
            return str(n)
        return draw.choice([f"{n}.0", f"{n}e0", f"+{n}", f"0{n}", f"-{n}", f'"{n}"', f"{n}.", f" {n} ", f"{n}\n", f"{n + 2**64}", f"{n}E0", f"{n}e-0", "null", "1" + "0" * 25, "true"])

    def space():
        return draw.choice(["", "", "", "", "", " ", "\n", "\t", "  "]) if draw.random() < 0.95 else draw.choice(["\r", "\f", "\u00a0", "\ufeff", "\0", "/**/", "//\n", "\v"])

    def shape_text(shape):
        return "[" + ("," + space()).join(number(d) for d in shape) + (space() if draw.random() < 0.98 else ",") + "]"

    def entry(dtype, shape, begin, end):
        members = [("dtype", json_text(draw, dtype) if draw.random() < 0.1 else f'"{dtype}"'), ("shape", shape_text(shape)), ("data_offsets", shape_text([begin, end]))]
        if draw.random() < 0.1:
            draw.shuffle(members)
        if draw.random() < 0.04:
            members.append(draw.choice([("dtype", '"U8"'), ("shape", shape_text([1])), ("data_offsets", shape_text([0, 1])), ("extra", "1"), ("Dtype", '"U8"')]))
        if draw.random() < 0.02:
            members.pop(draw.randrange(3))
        return "{" + ",".join(space() + (json_text(draw, key) if draw.random() < 0.1 else f'"{key}"') + space() + ":" + space() + value for key, value in members) + space() + "}"

    members = [(name, entry(*rest)) for name, *rest in entries]
    if draw.random() < 0.4:
        pairs = [(draw.choice(["k", "format", "é", "", "a\n"]), draw.choice(["pt", "", "v", "\U0001f980"])) for _ in range(draw.choice([1, 2, 2]))]
        values = [json_text(draw, value) if draw.random() < 0.95 else draw.choice(["1", "null", "{}", "[]", "true"]) for _, value in pairs]
        text = "{" + ",".join(json_text(draw, key) + ":" + value for (key, _), value in zip(pairs, values)) + "}"
        members.insert(draw.randrange(len(members) + 1), ("__metadata__", text if draw.random() < 0.95 else draw.choice(["null", "[]", '""', "{}", "{}"])))
    if draw.random() < 0.06 and members:
        name, text = draw.choice(members)
        members.append((name, text if draw.random() < 0.5 else entry("U8", [1], 0, 1)))
    header = "{" + ",".join(space() + json_text(draw, name) + space() + ":" + space() + text for name, text in members) + space() + ("}" if draw.random() < 0.98 else ",}")
    if draw.random() < 0.03:
        header = draw.choice([" ", "\n", "\ufeff", "["]) + header
    content = header.encode("utf-8", "surrogatepass")
    content += draw.choice([b"", b" ", b" " * (-len(content) % 8), b"\n", b"\0"]) if draw.random() < 0.3 else b" " * (-len(content) % 8)
    if draw.random() < 0.05:
        content = change_bytes(draw, content)
    if draw.random() < 0.04:
        payload = draw.choice([payload + b"\0", payload[:-1], payload + payload])
    return struct.pack("<Q", len(content) if draw.random() < 0.97 else max(0, len(content) + draw.choice([-1, 1, 8, -8]))) + content + payload


# ------------------------------------------------------------------------------------------------------------------------ GGUF

BLOCKS = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292), 16: (256, 66),
          17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54),
          35: (256, 66), 39: (32, 17)}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def gguf(draw):
    """A GGUF file with a few keys and tensors, of either byte order, whose numbers are sometimes wrong."""
    order = ">" if draw.random() < 0.1 else "<"
    wrong = lambda value, chance=0.02: draw.choice(NUMBERS) if draw.random() < chance else value
    u32 = lambda value, chance=0.01: struct.pack(order + "I", wrong(value, chance) % 2**32)
    u64 = lambda value, chance=0.01: struct.pack(order + "Q", wrong(value, chance) % 2**64)

    def text(content):
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        return u64(len(content), 0.003) + content

    def scalar(kind):
        if kind == 8:
            return text(draw.choice(["", "text", "é", "a\0b", "x" * 40, b"\xff", "\U0001f980", b"\xed\xa0\x80"]))
        if kind == 7:
            return bytes([draw.choice([0, 1, 1, 2, 255]) if draw.random() < 0.2 else draw.randrange(2)])
        size = struct.calcsize(SCALARS[kind])
        return draw.randbytes(size) if kind in (6, 12) or draw.random() < 0.5 else bytes([draw.randrange(5)]).ljust(size, b"\0")[::1 if order == "<" else -1]

    alignment, keys = 32, []
    if draw.random() < 0.3:
        alignment = draw.choice([32, 8, 1, 64, 16, 4, 2, 24, 33, 128])
        kind = 4 if draw.random() < 0.8 else draw.choice([0, 5, 10, 2, 8, 6])
        value = text(str(alignment)) if kind == 8 else struct.pack(order + SCALARS[kind], alignment)
        keys.append(("general.alignment", u32(kind, 0) + value))
    for _ in range(draw.randrange(4)):
        kind = draw.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 9, 10, 11, 12])
        name = draw.choice(["general.name", "general.architecture", "k", "K", "é", "a.b", "general.quantization_version", "x" * 70, "a b", "tokenizer.ggml.tokens", "", b"\xff", "general.alignment."])
        if kind == 9:
            inner = draw.choice([0, 4, 5, 6, 7, 8, 10, 12])
            count = draw.choice([0, 1, 2, 5])
            value = u32(inner, 0.005) + u64(count, 0.005) + b"".join(scalar(inner) for _ in range(count))
        else:
            value = scalar(kind)
        keys.append((name, u32(kind, 0.005) + value))
    if keys and draw.random() < 0.05:
        keys.append(draw.choice(keys))
    draw.shuffle(keys)
    infos, payload = [], b""
    for i in range(draw.choice([0, 1, 2, 2, 3])):
        kind = draw.choice([0, 0, 1, 24, 26, 27, 28, 30, 8, 2, 12, 14, *BLOCKS])
        elements, size = BLOCKS[kind]
        dims = draw.choice([[elements], [elements, 2], [elements, 1, 2], [elements * 2, 1], [elements, 1, 1, 1], [elements, 2, 1, 2], [elements * 2]])
        if elements == 1 and draw.random() < 0.2:
            dims = draw.choice([[], [3], [3, 2], [0], [0, 2], [5], [1] * 5, [3, 1], [1, 3]])
        count = 1
        for d in dims:
            count *= d
        length = count // elements * size
        payload += b"\0" * (-len(payload) % alignment)
        name = draw.choice(["w", "W", "blk.0.attn.weight", "é", "x" * 64, "x" * 63, "", "a\0", "output.weight"]) + (str(i) if draw.random() < 0.95 else "")
        offset = len(payload) if draw.random() < 0.96 else draw.choice([0, 32, len(payload) + alignment, len(payload) + 1, 2**63])
        infos.append(text(name) + u32(len(dims), 0.005) + b"".join(u64(d, 0.005) for d in dims) + u32(kind, 0.01) + u64(offset, 0.005))
        payload += draw.randbytes(length)
    if draw.random() < 0.05 and infos:
        infos.append(draw.choice(infos))
    if draw.random() < 0.05:
        draw.shuffle(infos)
    version = draw.choice([3, 3, 3, 3, 2, 1, 4, 0]) if draw.random() < 0.3 else 3
    head = b"GGUF" + struct.pack(order + "I", version) + u64(len(infos), 0.01) + u64(len(keys), 0.01)
    head += b"".join(text(name) + value for name, value in keys) + b"".join(infos)
    head += (b"\0" if draw.random() < 0.97 else b"\1") * (-len(head) % alignment)
    tail = draw.choice([b"", b"\0" * (-len(payload) % alignment), b"\0" * 40]) if draw.random() < 0.4 else b"\0" * (-len(payload) % alignment)
    out = head + payload + tail
    return change_bytes(draw, out, 0, len(head)) if draw.random() < 0.15 else out


# ------------------------------------------------------------------------------------------------------------------------ ONNX


def varint(value, longer=0):
    value %= 2**64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    for _ in range(longer):
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def read_message(data, descriptor):
    """Fields as [number, wire type, value]; messages that the descriptor knows are lists again."""
    out, at = [], 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = number()
        wire, field = tag & 7, descriptor.fields_by_number.get(tag >> 3) if descriptor else None
        if wire == 0:
            out.append([tag >> 3, 0, number()])
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            out.append([tag >> 3, wire, data[at:at + size]])
            at += size
        else:
            size = number()
            content = data[at:at + size]
            at += size
            out.append([tag >> 3, 2, read_message(content, field.message_type) if field and field.message_type else content])
    return out


def write_message(fields):
    out = b""
    for number, wire, value in fields:
        out += varint(number << 3 | wire)
        if isinstance(value, tuple):  # a varint longer than it needs to be
            out += varint(value[0], value[1])
        elif wire == 0:
            out += varint(value)
        elif wire == 2:
            content = write_message(value) if isinstance(value, list) else value
            out += varint(len(content)) + content
        else:
            out += value
    return out


def messages(fields):
    """Every message below, with the list that holds it."""
    yield fields
    for field in fields:
        if isinstance(field[2], list):
            yield from messages(field[2])


def a_tensor(draw, name):
    """A TensorProto of a few elements, in any of the fields that can hold them."""
    kind, code, field, size = draw.choice([("f4", 1, 4, 4), ("i4", 6, 5, 4), ("i8", 7, 7, 8), ("f8", 11, 10, 8), ("u1", 2, 5, 1), ("u8", 13, 11, 8), ("f2", 10, 5, 2), ("b1", 9, 5, 1), ("i2", 5, 5, 2), ("c8", 14, 4, 8),
                                           ("u4", 12, 11, 4), ("bf", 16, 5, 2), ("e4", 17, 5, 1), ("s", 8, 6, 0), ("i4x2", 22, 5, 1), ("c16", 15, 10, 16), ("u2", 4, 5, 2)])
    count = draw.choice([1, 2, 3, 6])
    dims = draw.choice([[count], [1, count], [count, 1]]) if draw.random() < 0.9 else draw.choice([[], [0], [2, 0]])
    total = 1
    for d in dims:
        total *= d
    fields = [[1, 0, d] for d in dims] if draw.random() < 0.6 else [[1, 2, b"".join(map(varint, dims))]]
    fields.append([2, 0, code])
    fields.append([8, 2, name.encode()])
    if draw.random() < 0.5 and size:
        fields.append([9, 2, bytes(draw.randrange(2) for _ in range(total)) if kind == "b1" else draw.randbytes(total * size if kind != "i4x2" else (total + 1) // 2)])
    else:
        values = [draw.choice([0, 1, 2, 100, 127, 128, 255, 65535, 2**31 - 1, 2**64 - 1, 2**64 - 5, 2**40]) if field in (5, 7, 11) and draw.random() < 0.3 else draw.randrange(2 if kind == "b1" else 100)
                  for _ in range(total * (2 if kind in ("c8", "c16") else 1))]
        if field in (5, 7, 11):
            fields += [[field, 2, b"".join(map(varint, values))]] if draw.random() < 0.5 else [[field, 0, v] for v in values]
        elif field == 6:
            fields += [[6, 2, b"text"] for _ in range(total)]
        else:
            pack = "<f" if field == 4 else "<d"
            wire = 5 if field == 4 else 1
            fields += [[field, 2, b"".join(struct.pack(pack, v) for v in values)]] if draw.random() < 0.5 else [[field, wire, struct.pack(pack, v)] for v in values]
    return fields


def change_message(draw, root, external):
    """A message tree changed in place: fields repeated, moved, divided, of another type, with other numbers."""
    every = [fields for fields in messages(root) if fields]
    fields = draw.choice(every)
    at = draw.randrange(len(fields))
    number, wire, value = fields[at]
    action = draw.randrange(15)
    if action == 0:
        fields.insert(draw.randrange(len(fields) + 1), [number, wire, value])
    elif action == 1:
        fields.pop(at)
    elif action == 2:
        draw.shuffle(fields)
    elif action == 3 and wire == 0 and isinstance(value, int):
        fields[at] = [number, 0, draw.choice([value + 1, value - 1, 0, 1, 2**31, 2**32, 2**63, 2**64 - 1, draw.randrange(30), value + 2**32])]
    elif action == 4 and wire == 0 and isinstance(value, int):
        fields[at] = [number, 0, (value, draw.choice([1, 2, 4]))]
    elif action == 5 and isinstance(value, list) and len(value) > 1:  # one message in two pieces, which protocol buffers merge
        cut = draw.randrange(len(value))
        fields[at:at + 1] = [[number, 2, value[:cut]], [number, 2, value[cut:]]]
    elif action == 6 and wire == 2 and isinstance(value, bytes) and value:
        fields[at] = [number, 2, change_bytes(draw, value)]
    elif action == 7 and wire == 2 and isinstance(value, bytes) and value:
        cut = draw.randrange(len(value))
        fields[at:at + 1] = [[number, 2, value[:cut]], [number, 2, value[cut:]]]
    elif action == 8:
        fields.append(draw.choice([[9, 2, draw.randbytes(8)], [4, 2, struct.pack("<f", 2.0)], [5, 0, 3], [14, 0, 1], [14, 0, 0], [1, 0, 2], [2, 0, draw.randrange(25)], [100, 0, 1], [100, 2, b"x"], [7, 2, b"\1\2"], [3, 2, b"\x08\0\x10\1"],
                                   [8, 2, b"other"], [13, 2, [[1, 2, b"location"], [2, 2, b"weights.bin"]]], [13, 2, [[1, 2, b"offset"], [2, 2, b"8"]]], [16, 2, [[1, 2, b"k"], [2, 2, b"v"]]], [15, 5, b"\0\0\0\0"], [12, 2, b"doc"]]))
    elif action == 9:
        fields[at] = [number, wire, value] if wire != 2 or isinstance(value, list) else [number, 0, draw.randrange(9)]
    elif action in (10, 11):  # elements in a neighbor
        tensor = [fields for fields in every if any(f[0] == 9 for f in fields) and any(f[0] == 2 for f in fields)]
        if tensor:
            target = draw.choice(tensor)
            content = next(f[2] for f in target if f[0] == 9)
            if isinstance(content, bytes) and content:
                size = len(content)
                keys = [("location", external), ("offset", draw.choice([b"0", b"8", b"4096", b" 8", b"0x8", b"08", b"+8", b"8 ", b"-1", b"", b"1_6", b"8.0", b"\xd9\xa8"])), ("length", draw.choice([b"%d" % size] * 6 + [b" %d" % size, b"%d " % size, b"0%d" % size, b"0", b"-1", b"+%d" % size, b"%d" % (size + 4), b""])),
                        ("checksum", b"0" * 40), ("other", b"x"), ("basepath", b"/"), ("location", b"other.bin"), ("offset", b"16")]
                keys = keys[:1] + draw.sample(keys[1:], draw.choice([0, 1, 1, 2, 2, 3]))
                if draw.random() < 0.3:
                    draw.shuffle(keys)
                target[:] = [f for f in target if f[0] != 9 or draw.random() < 0.05] + [[14, 0, 1]] + [[13, 2, [[1, 2, key.encode()], [2, 2, text]]] for key, text in keys]
                if draw.random() < 0.1:
                    target[:] = [f for f in target if f[0] != 14]
    elif action == 12:
        fields[:0] = [[number, wire, value]]
    elif action == 13:
        graph = [f for f in root if f[0] == 7]
        if graph and isinstance(graph[0][2], list):
            graph[0][2].append([5, 2, a_tensor(draw, draw.choice(["t", "u", "v", "é", ""]))])
    else:
        fields[at] = [draw.randrange(1, 30), wire, value]


# ------------------------------------------------------------------------------------------------------------------------ HDF5


def lookup3(data, initial=0):
    """Jenkins' checksum, as HDF5 stores it behind its newer structures."""
    mask = 0xFFFFFFFF
    rot = lambda x, k: (x << k | x >> 32 - k) & mask
    a = b = c = (0xDEADBEEF + len(data) + initial) & mask
    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        a = (a - c & mask) ^ rot(c, 4); c = c + b & mask
        b = (b - a & mask) ^ rot(a, 6); a = a + c & mask
        c = (c - b & mask) ^ rot(b, 8); b = b + a & mask
        a = (a - c & mask) ^ rot(c, 16); c = c + b & mask
        b = (b - a & mask) ^ rot(a, 19); a = a + c & mask
        c = (c - b & mask) ^ rot(b, 4); b = b + a & mask
        at += 12
    rest = data[at:]
    if not rest:
        return c
    x, y, z = struct.unpack("<III", bytes(rest).ljust(12, b"\0"))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    c = (c ^ b) - rot(b, 14) & mask
    a = (a ^ c) - rot(c, 11) & mask
    b = (b ^ a) - rot(a, 25) & mask
    c = (c ^ b) - rot(b, 16) & mask
    a = (a ^ c) - rot(c, 4) & mask
    b = (b ^ a) - rot(a, 14) & mask
    return (c ^ b) - rot(b, 24) & mask


def checked_blocks(data):
    """(begin, end) of what a checksum covers, which follows it; found in a file without faults by the checksums themselves."""
    out = []
    if data[:8] == b"\x89HDF\r\n\x1a\n" and data[8] >= 2:
        out.append((0, 44))
    for mark in (b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTLF", b"BTIN", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EADB"):
        at = data.find(mark)
        while at >= 0:
            for end in range(at + 8, min(at + 1200, len(data) - 4)):
                if lookup3(data[at:end]) == int.from_bytes(data[end:end + 4], "little"):
                    out.append((at, end))
                    break
            at = data.find(mark, at + 1)
    return out


def change_hdf5(draw, data, blocks, payload):
    """Bytes of the structures changed, not those of the elements; checksums made right again. `payload`: ranges to spare."""
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        while True:
            if blocks and draw.random() < 0.6:
                begin, end = draw.choice(blocks)
                at = draw.randrange(begin, end)
            else:
                at = draw.randrange(len(out))
            if not any(begin <= at < end for begin, end in payload) or draw.random() < 0.05:
                break
        action = draw.randrange(6)
        if action == 0:
            out[at] ^= 1 << draw.randrange(8)
        elif action == 1:
            out[at] = draw.choice([0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 255])
        elif action == 2:
            out[at] = (out[at] + draw.choice([-1, 1, 2, 8])) % 256
        elif action == 3:
            width = draw.choice([2, 4, 8])
            out[at:at + width] = (draw.choice(NUMBERS) % 256**width).to_bytes(width, "little")[:len(out) - at]
        elif action == 4:
            width, other = draw.choice([1, 2, 4, 8]), draw.randrange(len(out))
            out[at:at + width] = out[other:other + width]
        else:
            width = draw.choice([8, 16])
            other = draw.randrange(len(out))
            out[at:at + width], out[other:other + width] = out[other:other + width], out[at:at + width]
    out = out[:len(data)]
    for begin, end in blocks:
        out[end:end + 4] = lookup3(bytes(out[begin:end])).to_bytes(4, "little")
    return bytes(out)
