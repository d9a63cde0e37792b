// SPDX-License-Identifier: Apache-2.0
// Turns the caller's sources into what the worker mounts, and reads bytes of a source without the worker.

import { WeighbridgeError } from "./errors.js";
import type { Host } from "./host.js";
import type { Beside, FileBytes, MountedSource } from "./protocol.js";
import type { FileSource, Folder, Source } from "./types.js";

/** Throws `misuse` for anything that is not a source, and for a name that is not a valid file name. */
export async function mounted(host: Host, source: Source): Promise<MountedSource> {
  if (isFolder(source)) {
    const files = source.files.map(async (file) => {
      const { name, file: bytes } = await mountedFile(host, file);
      return { path: relativePath(pathInFolder(file, name)), file: bytes };
    });
    return { name: plainName(source.name), files: await Promise.all(files) };
  }
  const { name, file } = await mountedFile(host, source);
  return { name: plainName(name), file };
}

/** A source and the files beside it, in the form that calls take. */
export async function mountedBeside(
  host: Host,
  source: Source,
  beside: readonly FileSource[] = [],
): Promise<Beside> {
  const mount = (file: Source): Promise<MountedSource> => mounted(host, file);
  return { source: await mount(source), beside: await Promise.all(beside.map(mount)) };
}

/** Reads bytes from `offset`, fewer at the end of the file. */
export async function readBytes(host: Host, source: Source, offset: number, length: number): Promise<Uint8Array> {
  if (!(offset >= 0 && length >= 0)) throw WeighbridgeError.of("misuse", "offset and length must not be negative");
  if (isFolder(source)) throw WeighbridgeError.of("misuse", "a folder has no bytes: ask for those of a file");
  if (typeof source === "string") return host.readPath(source, offset, length);
  if (!(source instanceof Blob)) return source.bytes.slice(offset, offset + length);
  try {
    return new Uint8Array(await source.slice(offset, offset + length).arrayBuffer());
  } catch (error) {
    const message = `${source.name} could not be read: ${String(error)}`;
    throw new WeighbridgeError({ kind: "io", message, findings: [], path: source.name });
  }
}

async function mountedFile(host: Host, source: FileSource): Promise<{ name: string; file: FileBytes }> {
  if (typeof source === "string") return host.path(source);
  if (source instanceof Blob) return { name: source.name, file: await host.blob(source) };
  if (source?.bytes instanceof Uint8Array) return { name: source.name, file: { kind: "bytes", bytes: source.bytes } };
  const forms = "a File, a Blob with a name, { name, bytes }, { name, files } or a path";
  throw WeighbridgeError.of("misuse", `a source is ${forms}`);
}

function isFolder(source: Source): source is Folder {
  return typeof source === "object" && source !== null && "files" in source && Array.isArray(source.files);
}

/** A folder picker names a file by a path that begins with the name of the picked folder. */
function pathInFolder(source: FileSource, name: string): string {
  const picked = typeof source === "object" && "webkitRelativePath" in source ? source.webkitRelativePath : "";
  return typeof picked === "string" && picked.includes("/") ? picked.slice(picked.indexOf("/") + 1) : name;
}

function relativePath(path: string): string {
  return path.split("/").map(plainName).join("/");
}

function plainName(name: unknown): string {
  if (typeof name !== "string" || name === "" || name === "." || name === ".." || /[/\0]/.test(name)) {
    throw WeighbridgeError.of("misuse", `${JSON.stringify(name)} cannot be a file's name`);
  }
  return name;
}
