// SPDX-License-Identifier: Apache-2.0
// Parses the core's JSON texts. Integers beyond 2^53 stay exact in values from the file (attributes), and become the
// nearest number elsewhere, so that offsets and sizes have one type.

// Also matches strings and fractions, so that digits inside them are not read as integers.
const kLongToken = /"(?:[^"\\]|\\.)*"|-?\d+[.eE][\d.eE+-]*|-?\d{16,}/g;

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
  if (!exact) return JSON.parse(text);
  return restore(JSON.parse(marked), mark, false);
}

function restore(value: unknown, mark: string, exact: boolean): unknown {
  if (typeof value === "string") {
    if (!value.startsWith(mark)) return value;
    const digits = value.slice(mark.length);
    return exact ? BigInt(digits) : Number(digits);
  }
  if (Array.isArray(value)) return value.map((item) => restore(item, mark, exact));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, restore(item, mark, exact || key === "attributes")]),
  );
}
