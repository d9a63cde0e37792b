// SPDX-License-Identifier: Apache-2.0
// <wb-file-drop>: takes files, chosen or dropped anywhere on the page; a folder becomes one model. Takes only names and
// handles: bytes are read later, slice by slice.

import type { NamedBlob } from "./api.js";
import { button, h } from "./dom.js";
import { notify } from "./notice.js";
import { session, type DroppedFolder } from "./state.js";

const MOST_FILES = 2000;

interface Dropped {
  files: File[];
  folder: DroppedFolder | null;
}

/** The file picker; the page's buttons click it. */
export const fileInput = h("input", { type: "file", multiple: true, id: "files", class: "visually-hidden",
  tabindex: "-1", "aria-hidden": "true", onchange: () => {
    const files = [...fileInput.files ?? []];
    fileInput.value = ""; // so that the same file can be chosen again
    void take({ files, folder: null });
  } });

export function chooseFiles(): void { fileInput.click(); }

function chooseFolder(): void {
  const input = h("input", { type: "file", webkitdirectory: true });
  input.addEventListener("change", () => {
    const files = [...input.files ?? []];
    const name = files[0]?.webkitRelativePath.split("/")[0] ?? "folder";
    void take({ files: [], folder: files.length > 0 ? { name, files } : null });
  });
  input.click();
}

async function take({ files, folder }: Dropped): Promise<void> {
  if (files.length + (folder?.files.length ?? 0) > MOST_FILES) {
    notify(`More than ${MOST_FILES} files at once: open the folder of the model, not its parent.`, "error");
    return;
  }
  await session.add(files, folder);
}

const entriesOf = (directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = directory.createReader();
  const found: FileSystemEntry[] = [];
  return new Promise((resolve, reject) => {
    const more = (): void => reader.readEntries((entries) => {
      found.push(...entries);
      if (entries.length === 0 || found.length > MOST_FILES) resolve(found);
      else more();
    }, reject);
    more();
  });
};

/** The files of a folder and of its immediate subfolders, named by their paths in it. Reads no bytes. */
async function filesOf(directory: FileSystemDirectoryEntry, prefix = ""): Promise<NamedBlob[]> {
  const found: NamedBlob[] = [];
  for (const entry of await entriesOf(directory)) {
    if (found.length > MOST_FILES) break;
    if (entry.isFile) {
      const file = await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail));
      const blob: Blob = file.slice(0, file.size);
      found.push(Object.assign(blob, { name: prefix + file.name }));
    } else if (prefix === "") {
      found.push(...await filesOf(entry as FileSystemDirectoryEntry, `${entry.name}/`));
    }
  }
  return found;
}

async function dropped(transfer: DataTransfer): Promise<Dropped> {
  const handles = [...transfer.items].map((item) => item.webkitGetAsEntry());
  const files = [...transfer.files];
  const directories = handles.filter((handle): handle is FileSystemDirectoryEntry => handle?.isDirectory === true);
  const directory = directories[0];
  if (!directory) return { files, folder: null };
  if (directories.length > 1) notify("One folder at a time: only the first was opened.");
  const names = new Set(directories.map((handle) => handle.name));
  return { files: files.filter((file) => !names.has(file.name)),
    folder: { name: directory.name, files: await filesOf(directory) } };
}

/** Makes the whole page accept dropped files. */
export function listenForDrops(page: HTMLElement): void {
  let inside = 0;
  const count = (files: number): void => {
    inside = Math.max(0, files);
    page.toggleAttribute("data-dropping", inside > 0);
  };
  const carriesFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
  document.addEventListener("dragenter", (event) => { if (carriesFiles(event)) count(inside + 1); });
  document.addEventListener("dragleave", (event) => { if (carriesFiles(event)) count(inside - 1); });
  document.addEventListener("dragover", (event) => { if (carriesFiles(event)) event.preventDefault(); });
  document.addEventListener("drop", (event) => {
    count(0);
    if (!event.dataTransfer || !carriesFiles(event)) return;
    event.preventDefault();
    dropped(event.dataTransfer).then(take).catch((error: unknown) =>
      notify(`The dropped files cannot be read: ${String(error)}`, "error"));
  });
}

class FileDrop extends HTMLElement {
  connectedCallback(): void {
    this.replaceChildren(
      h("p", { class: "drop-lead" }, "Drop a model here"),
      h("p", { class: "quiet" },
        "with the files that belong to it: vocabulary, tokenizer, sidecar, manifest, adapters"),
      h("div", { class: "row center" }, button("Choose files", chooseFiles, "primary"),
        button("Choose a folder", chooseFolder)));
  }
}

customElements.define("wb-file-drop", FileDrop);
