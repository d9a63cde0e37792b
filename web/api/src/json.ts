// SPDX-License-Identifier: Apache-2.0
// Parses the core's JSON texts: the one place where their names (snake_case, docs/schemas) become those of the package
// (camelCase). Integers beyond 2^53 stay exact in values from the file (attributes), and become the nearest number
// elsewhere, so that offsets and sizes have one type.

// Also matches strings and fractions, so that digits inside them are not read as integers.
const kLongToken = /"(?:[^"\\]|\\.)*"|-?\d+[.eE][\d.eE+-]*|-?\d{16,}/g;

/** Members whose own members are named by the file or by its format. Their names stay as they are. */
const kNamedByFile = new Set(["attributes", "checksums", "special"]);

export function parseCoreText(text: string): unknown {
  let exact = false;
  // A mark that does not occur in the text cannot be confused with a string of the file.
  let mark = "bigint:";
  while (text.includes(mark)) mark = `#${mark}`;
  const marked = text.replace(kLongToken, (token) => {
    if (/[".eE]/.test(token) || Number.isSafeInteger(Number(token))) return token;
    exact = true;
    return `"${mark}${token}"`;
  });
  return finish(JSON.parse(marked), exact ? mark : null, "");
}

/** Renames and restores in place. `within`: the member of kNamedByFile that the value belongs to. */
function finish(value: unknown, mark: string | null, within: string): unknown {
  if (typeof value === "string" && mark !== null && value.startsWith(mark)) {
    const digits = value.slice(mark.length);
    return within === "attributes" ? BigInt(digits) : Number(digits);
  }
  if (typeof value !== "object" || value === null || (within !== "" && mark === null)) return value;
  const members = value as Record<string, unknown>; // or the items of a list
  for (const name of Object.keys(members)) {
    const item = members[name];
    if (typeof item === "object" || mark !== null) {
      members[name] = finish(item, mark, within === "" && kNamedByFile.has(name) ? name : within);
    }
    if (within === "" && name.includes("_", 1)) rename(members, name);
  }
  return value;
}

function rename(members: Record<string, unknown>, name: string): void {
  const own = name.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  if (own === name) return;
  members[own] = members[name];
  delete members[name];
}
