/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The library for C (C99), and for every language that calls C: open, read elements, verify, hash, convert, compare,
 * check, edit, sign and patch.
 *
 * Objects are opaque. You own each object that a function returns; free it once with its wb_*_free(). Any number of
 * threads may use an object. Configure wb_job and wb_options before you share them.
 *
 * A function that can fail returns a wb_error, or NULL. It sets its outputs on success and leaves them unchanged on
 * failure. No C++ exception leaves these functions. NULL for a required argument is WB_MISUSE; a function that returns
 * no error then returns 0, "" or NULL and does nothing.
 *
 * A call that takes a path and an output writes the output completely or not at all, and refuses one that exists unless
 * the option "overwrite" is set.
 *
 * Options are set by name, with their value as text. Results are the JSON that `weighbridge --json` prints
 * (docs/schemas/); wb_text_free() frees it.
 *
 * Texts are UTF-8 and end with a NUL. Those that accessors return belong to the object and live as long as it. Names of
 * tensors are exact and may contain a NUL, so they come with their length. The texts of an error are escaped, so that
 * they can be shown; wb_error_json() has the exact ones.
 *
 * Functions take and return enumerators as int, because later versions may add some: expect numbers that you do not
 * know. A number never changes its meaning.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_error wb_error;     /**< what went wrong */
typedef struct wb_job wb_job;         /**< limits, threads, progress and cancellation of calls; NULL: the defaults */
typedef struct wb_options wb_options; /**< settings by name; NULL: the defaults */
typedef struct wb_model wb_model;     /**< an open file or folder */
typedef struct wb_plan wb_plan;       /**< what a conversion would do */

/** What kind of failure a wb_error is. */
typedef enum wb_kind {
  WB_MALFORMED = 1,   /**< the file breaks a rule */
  WB_UNSUPPORTED = 2, /**< the file holds what this build cannot interpret */
  WB_MISUSE = 3,      /**< the caller asked for something impossible */
  WB_IO = 4,          /**< the system failed */
  WB_LIMIT = 5,       /**< it needs more than the job's limits */
  WB_CANCELLED = 6,   /**< the progress function or wb_job_cancel() stopped it */
  WB_MEMORY = 7,      /**< there is not enough memory */
  WB_INTERNAL = 8     /**< a defect of the library, or an exception from a progress function */
} wb_kind;

/** What wb_verify() and the other checks found. */
typedef enum wb_verdict {
  WB_VALID = 0,       /**< no error; there may be warnings */
  WB_INVALID = 1,     /**< the file breaks a rule, or exceeds a limit of the job; or as the call says */
  WB_INCONCLUSIVE = 3 /**< valid, but tensors cannot be interpreted, or it is not known to be safe to load */
} wb_verdict;

/** Which digest wb_hash() computes. */
typedef enum wb_digest {
  WB_DIGEST_CONTENT = 0,              /**< of names, types, shapes and elements, whatever the container */
  WB_DIGEST_CONTENT_WITHOUT_NAMES = 1 /**< the same without names */
} wb_digest;

/** The version of the library, such as "0.3.0". */
const char* wb_version(void);
/** Frees a text that a function returned. */
void wb_text_free(char* text);

int wb_error_kind(const wb_error*);             /**< a wb_kind */
const char* wb_error_message(const wb_error*);  /**< one sentence for people, after the name of the file */
const char* wb_error_rule(const wb_error*);     /**< a stable id for programs, such as "gguf/magic"; may be "" */
const char* wb_error_file(const wb_error*);     /**< the file concerned; "" if it is about none */
const char* wb_error_expected(const wb_error*); /**< "" if the rule compares nothing */
const char* wb_error_found(const wb_error*);    /**< in the units of expected */
const char* wb_error_hint(const wb_error*);     /**< the option, limit or file that would help; "" if none is known */
/** The exact name of the tensor concerned; NULL if it is about none. */
const char* wb_error_tensor(const wb_error*, size_t* length);
/** Returns 1 and stores the byte offset if the error is at one place; else 0. */
int wb_error_offset(const wb_error*, uint64_t* offset);
/** All of it, as in the "findings" of results; "null" for kinds from WB_CANCELLED on. */
wb_error* wb_error_json(const wb_error*, char** json);
void wb_error_free(wb_error*); /**< frees it */

/** Called from time to time with the bytes done of `total` (0: not known yet), by any thread, but never by two at once
 * for one job. Returns 0 to stop the call. Once the work is done, it is called a last time with `done` equal to
 * `total`; only calls that write files, which are not published yet, can still be stopped by that. A call with several
 * steps counts each of them. It may make calls with the same job, which work in its thread and do not call it. It must
 * not throw, and must not leave by longjmp(). */
typedef int (*wb_progress)(uint64_t done, uint64_t total, void* user);

/** Makes a job with the default limits and one thread. */
wb_error* wb_job_new(wb_job** out);
/** Sets a limit by its name: "memory", "header", "decoded", "work", "output", in bytes; "tensors", "depth". Their
 * ranges and defaults are those of docs/options.md. */
wb_error* wb_job_set_limit(wb_job*, const char* name, uint64_t value);
/** How many threads work, the caller's included, up to 1024; 0: one for each processor. The default is 1. */
wb_error* wb_job_set_threads(wb_job*, unsigned threads);
void wb_job_set_progress(wb_job*, wb_progress, void* user); /**< NULL: none */
/** Stops running and later calls with this job. Cannot be undone. Safe from any thread, a hook or a signal handler. */
void wb_job_cancel(wb_job*);
void wb_job_free(wb_job*); /**< frees it; nothing may run with it */

/** Makes options, all at their defaults. */
wb_error* wb_options_new(wb_options** out);
/** Sets one by its name and its value as text: those of docs/options.md that C takes, and "to", the name of the format
 * to convert to. An option that may be repeated adds to what is set. A call refuses options that it cannot use; its
 * description names the tables that it takes, or single options. */
wb_error* wb_options_set(wb_options*, const char* name, const char* value);
void wb_options_free(wb_options*); /**< frees it */

/** Opens a file or a folder. Options: Opening. */
wb_error* wb_open(const char* path, const wb_options*, const wb_job*, wb_model** out);
const char* wb_model_format(const wb_model*); /**< its name, such as "safetensors" */
size_t wb_model_size(const wb_model*);        /**< how many tensors it has */
/** The index of the tensor with this name; wb_model_size() if there is none. */
size_t wb_model_find(const wb_model*, const char* name, size_t length);
const char* wb_tensor_name(const wb_model*, size_t tensor, size_t* length); /**< NULL past the last one */
int wb_tensor_readable(const wb_model*, size_t tensor);          /**< whether wb_read() can interpret its elements */
const char* wb_tensor_dtype(const wb_model*, size_t tensor);     /**< "bf16"; of blocks "f32"; "unknown" */
int wb_tensor_has_shape(const wb_model*, size_t tensor);         /**< a file may lack the shape of a tensor */
size_t wb_tensor_rank(const wb_model*, size_t tensor);           /**< how many dimensions; 0 for a scalar */
const uint64_t* wb_tensor_shape(const wb_model*, size_t tensor); /**< slowest dimension first; NULL if rank is 0 */
uint64_t wb_tensor_count(const wb_model*, size_t tensor);        /**< elements of its dense form; 0 without a shape */
void wb_model_free(wb_model*);                                   /**< frees it; plans made of it stay */

/** Fills `out` with the elements [first, first + count) of the tensor's dense form, row-major and little-endian, as
 * `dtype` (NULL: its own). `size` must equal the bytes of these elements; the range must begin and end on byte
 * boundaries, or end with the tensor. Of compressed and sparse tensors, each call decodes from the first element: read
 * these in few large ranges. */
wb_error* wb_read(const wb_model*, size_t tensor, const char* dtype, uint64_t first, uint64_t count, void* out,
                  size_t size, const wb_job*);
/** What `weighbridge inspect --json` prints. */
wb_error* wb_inspect(const wb_model*, char** json);
/** Verifies a file or a folder. What is wrong with it is a result, not an error. `verdict`: a wb_verdict. `json`: what
 * `weighbridge verify --json` prints. Both may be NULL, here and below. Options: Opening. */
wb_error* wb_verify(const char* path, const wb_options*, const wb_job*, int* verdict, char** json);
/** A digest, a wb_digest, in its text form, such as "wb2:...". */
wb_error* wb_hash(const wb_model*, int digest, const wb_job*, char** text);

/** What converting to `path` would do: the format is that of its extension, unless the option "to" names one. Changes
 * nothing. Options: Conversions, Views, "to". */
wb_error* wb_plan_new(const wb_model*, const char* path, const wb_options*, const wb_job*, wb_plan** out);
int wb_plan_possible(const wb_plan*);                /**< whether nothing blocks it and each loss is allowed */
wb_error* wb_plan_json(const wb_plan*, char** json); /**< what `weighbridge convert --dry-run --json` prints */
/** Carries out the plan: writes, reads back, then replaces the old output. `json`: the result; may be NULL. If memory
 * runs out after the output is there, the result is NULL. */
wb_error* wb_plan_execute(const wb_plan*, const wb_job*, char** json);
void wb_plan_free(wb_plan*); /**< frees it */

/** What differs between two models. `equal`: 1 if nothing differs and everything could be compared, else 0. `json`:
 * what `weighbridge diff --json` prints. Options: Comparing. */
wb_error* wb_diff(const wb_model* a, const wb_model* b, const wb_options*, const wb_job*, int* equal, char** json);

/** Changes the metadata of a file and renames its tensors, in place if the new header fits; with the option "output" it
 * writes a new file. Close models of the file first. `dry_run`: not 0 to check all and write nothing. `json`: what
 * `weighbridge edit --json` prints; may be NULL. Fails with "io/journal" if an edit was killed and its journal cannot
 * be used, and with "io/in-use" if another process has the file open. Options: Edits. */
wb_error* wb_edit(const char* path, const wb_options*, int dry_run, const wb_job*, char** json);

/** Checks a file or a folder against a policy: "download", "publish", "strict" or the path of one in JSON
 * (docs/policies.md). `manifest`: the path of the signed list of files for the demand "keys"; NULL: none. `verdict`:
 * WB_INVALID if a demand is broken. `json`: what `weighbridge check --json` prints. Options: Opening. */
wb_error* wb_check(const char* path, const char* policy, const char* manifest, const wb_options*, const wb_job*,
                   int* verdict, char** json);

/** Lists the files of a file or folder with their SHA-256 in `output`, signed if the option "key" names a private key.
 * "overwrite" replaces only manifests. `json`: what `weighbridge manifest --json` prints; may be NULL. Fails with
 * WB_UNSUPPORTED if this build cannot sign. Options: Manifests, Signing a manifest. */
wb_error* wb_manifest_write(const char* path, const char* output, const wb_options*, const wb_job*, char** json);
/** Compares a file or a folder with the manifest at a path, and checks its signature if an option names a key or roots.
 * `verdict`: WB_INVALID if files or the signature are wrong, WB_INCONCLUSIVE if only the signature was not checked.
 * `json`: what `weighbridge verify --manifest --json` prints. Options: Checking files against a manifest, Checking
 * the signature of a manifest. */
wb_error* wb_manifest_verify(const char* path, const char* manifest, const wb_options*, const wb_job*, int* verdict,
                             char** json);

/** Whether the GGUF file at a path was made from `source`: makes every tensor again and compares the bytes.
 * `statement`: the path of one by `weighbridge convert --statement`, which says how; NULL: the file says it. `verdict`:
 * WB_INVALID if a tensor differs, WB_INCONCLUSIVE if it needs the importance matrix, which the option "imatrix" names.
 * `json`: what `weighbridge verify --derived-from --json` prints. Fails with WB_MALFORMED and "statement/source",
 * "statement/subject" or "statement/imatrix" if the statement is about other files. Options: "imatrix". */
wb_error* wb_verify_derivation(const char* path, const wb_model* source, const char* statement, const wb_options*,
                               const wb_job*, int* verdict, char** json);

/** Writes the patch that turns `base` into `result` to `output`, a zTensor file (docs/patching.md). `json`: what
 * `weighbridge diff --patch --json` prints; may be NULL. Options: "overwrite", "metadata". */
wb_error* wb_make_patch(const wb_model* base, const wb_model* result, const char* output, const wb_options*,
                        const wb_job*, char** json);
/** Writes one patch that does what `count` patches do one after the other. Fails with WB_MISUSE if one does not begin
 * where the one before it ends. Options: "overwrite". */
wb_error* wb_fold_patches(const wb_model* const* patches, size_t count, const char* output, const wb_options*,
                          const wb_job*, char** json);
/** The model that the patches make of the base, one after the other; free it as any other. It keeps what it needs of
 * them, so you may free `base` and `patches`. Its elements are computed when they are read: wb_plan_new() and
 * wb_plan_execute() write it. Checks base and result by their digests first. Fails with WB_MISUSE "misuse/patch-base"
 * for another base. */
wb_error* wb_apply(const wb_model* base, const wb_model* const* patches, size_t count, const wb_job*, wb_model** out);
/** Makes the file or folder at a path what the patches make of it, in its own files. Close models of it first. If the
 * process is killed, the next call finishes or undoes it. `dry_run`: not 0 to check all and write nothing. `json`: what
 * `weighbridge apply --in-place --json` prints; may be NULL. Fails with WB_MISUSE "misuse/in-place" for patches that do
 * more than change elements, and with "misuse/patch-base" for another base. */
wb_error* wb_apply_in_place(const char* path, const wb_model* const* patches, size_t count, int dry_run, const wb_job*,
                            char** json);

#ifdef __cplusplus
}
#endif
