/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Checkpoints: variables, and where the input was, in a file.
 *
 * A checkpoint is one safetensors file, which many programs read: a tensor for each variable, under its name, and texts,
 * its metadata. libdist's own begin with "libdist.": where the input was ("libdist.position.pass", ...), and checksums,
 * which are compared when a file is read. "libdist.crc32:NAME" is the CRC-32 (zlib's) of the data of tensor NAME,
 * "libdist.crc32" that of the header, where 0 stands for its own 8 digits. Files of other programs have none and are read
 * all the same; a program that changes a file and keeps its metadata has to leave libdist's out.
 *
 * A file is written under another name in the same folder, ".dist-<16 hexadecimal digits>.tmp", brought to the disk, and
 * put in the place of the old one in one step: whenever a process ends or a machine stops, the old file or the new one is
 * there, whole. Who is killed may leave the other name behind: nothing reads it, and it can be deleted.
 *
 * A sharded checkpoint is an index and the safetensors files that it names, its shards, in one folder. The index is JSON, as
 * other programs write and read it ("model.safetensors.index.json"): "weight_map" has the file of each tensor, "metadata"
 * the texts and "total_size", the bytes of all data; "libdist.crc32" is the checksum of the index, as of a header. Where a
 * path is taken to load or open, it may be that of an index, libdist's or another program's, or a symbolic link to one:
 * shards lie beside the index itself. What libdist calls a shard is the name of the index, 16 hexadecimal digits of this save,
 * and its number: "PATH.<digits>-00001-of-00003.safetensors". The index and its shards have these digits in common, as
 * "libdist.save", so that a shard of another save is not taken for one of this.
 */
#ifndef DIST_CHECKPOINT_H
#define DIST_CHECKPOINT_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_checkpoint_options {
  uint32_t struct_size;
  /* Saving: 1: `path` becomes an index, and each worker of the strategy writes the shard of its part of the variables; 0: one
   * file, which worker 0 writes. */
  int32_t sharded;
  const char *const *names; /* of the n variables in the file; NULL: their own */
  dist_position *position;  /* saving: where the input is; loading: is set to where it was; NULL: left out */
  /* Saving: texts of the host's for the file, each under a key. Loading: not read, see
   * dist_checkpoint_metadata(). */
  const char *const *metadata_keys;
  const char *const *metadata_texts;
  size_t num_metadata;
} dist_checkpoint_options;
#define DIST_CHECKPOINT_OPTIONS_INIT \
  { sizeof(dist_checkpoint_options), 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_checkpoint_options. */
DIST_API void dist_checkpoint_options_init(dist_checkpoint_options *options, uint32_t struct_size_bytes);

/**
 * Writes a checkpoint. Its file may be loaded with any number of replicas and any strategy.
 *
 *     for i in 0 .. n-1:   tensor names[i] of the file = what dist_variable_read() gives of variables[i]
 *
 * Data go to the file straight from the variable's memory; only a variable whose value is made of its copies is held
 * once more, one at a time. A file that is there is replaced, with access rights as for a new one; a symbolic link is
 * replaced itself, not what it points to.
 *
 * Sharded, every variable is in one shard, and the shards have about equal bytes; a worker without a variable writes none.
 * All workers need to have the same folder. The index takes its place when all shards are on the disk, and worker 0 has
 * seen them; until then the old checkpoint is there, whole. Then shards of older saves to this path are removed. Those of a
 * save that failed or was killed may stay until the next one that ends well: nothing reads them. So one job at a time saves
 * to a path.
 *
 * Context  Strategy, concurrent; nobody writes to the variables meanwhile. Also inside a merge function.
 * Blocks   Until the file is on the disk.
 * Errors   INVALID_ARGUMENT     NULL; two variables of one name, a name or text that is not UTF-8, a key that is there
 *                               twice or begins with "libdist."; the path is a folder, FIFO or device; a variable that
 *                               has no one value, as dist_variable_read(); `sharded` is neither 0 nor 1.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable; a forked child.
 *          NOT_FOUND            the folder is not there; a worker's shard is not there for worker 0.
 *          PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space, no memory, a file larger than the process may make one, which
 *          ends no process by SIGXFSZ), DATA_LOSS (a broken disk), UNAVAILABLE: in the system's words. What was at the path
 *          is still there, and nothing else is left, but for shards where worker 0 could not see or remove them; over
 *          several workers, where the file was written and a worker could not be told, the new one is there.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_save(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

/**
 * Gives variables the values that a file has for them. The file may have more tensors.
 *
 *     for i in 0 .. n-1:   dist_variable_assign(variables[i], DIST_ASSIGN, tensor names[i] of the file)
 *
 * The bits of the file come to every copy; of a sum over copies each gets its part. Everything is checked first, the
 * checksums too: on an error no variable has changed, unless the disk failed or somebody wrote into the file between its
 * two readings, when those from the named one on are unspecified.
 *
 * Context  Strategy, serialized for a variable. Also inside a merge function.
 * Blocks   Until all copies are written.
 * Owns     Nothing. options->position->struct_size says how much of it to write.
 * Errors   INVALID_ARGUMENT     NULL; a tensor of another dtype or shape than its variable; the path is a folder, FIFO
 *                               or device; a variable that takes no one value, as dist_variable_assign().
 *          NOT_FOUND            no such file, no such tensor in it, or no position; a shard of the index is not there.
 *          DATA_LOSS            not a safetensors file or index, or cut short, or changed: the message names the tensor.
 *          UNIMPLEMENTED        a tensor of the file has more than DIST_MAX_NDIM dimensions.
 *          FAILED_PRECONDITION  inside a replica function; another strategy's variable; a forked child.
 *          PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE: in the system's words.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_load(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CHECKPOINT_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_CHECKPOINT_EXPERIMENTAL_H)
#define DIST_CHECKPOINT_EXPERIMENTAL_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Opens a safetensors file, or the index of several, to see what is in it. If the file is replaced meanwhile, the old one
 * is read on.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the headers are read.
 * Owns     *out_checkpoint is the caller's: dist_checkpoint_destroy(). It may outlive the strategy.
 * Errors   As dist_checkpoint_load(), of the file.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_open(dist_strategy *strategy, const char *path,
                                                         dist_checkpoint **out_checkpoint);

/** How many tensors the file has; 0 for NULL. */
DIST_API size_t dist_checkpoint_size(const dist_checkpoint *checkpoint);

/**
 * The name of tensor `index`, in the order of their data, or of an index; "" for NULL, and where there is none.
 *
 * Owns     Borrowed: valid while the checkpoint is.
 */
DIST_API const char *dist_checkpoint_name(const dist_checkpoint *checkpoint, size_t index);

/**
 * A tensor's dtype and shape, without its data (NULL). dtype 0: one that libdist has not (8-bit floats and smaller).
 *
 * Shape    The tensor's.
 * Order    –
 * Owns     The shape is borrowed: valid while the checkpoint is.
 * Errors   INVALID_ARGUMENT  NULL.
 *          NOT_FOUND         no such tensor.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_spec(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_tensor *out_spec);

/**
 * Reads a tensor.
 *
 * Shape    The tensor's.
 * Order    The file's bits.
 * Blocks   While it is read.
 * Owns     *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT    NULL.
 *          NOT_FOUND           no such tensor.
 *          UNIMPLEMENTED       a dtype that libdist has not.
 *          DATA_LOSS           not the data that were written.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_read(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_value **out_value);

typedef struct dist_checkpoint_map_options {
  uint32_t struct_size;
  int32_t copy;     /* 1: read into memory of its own, as dist_checkpoint_read(); 0: mapped */
  int32_t verify;   /* 1: compare the checksums of what is mapped, which reads all of it; 0: not */
  int32_t reserved; /* 0 */
} dist_checkpoint_map_options;
#define DIST_CHECKPOINT_MAP_OPTIONS_INIT \
  { sizeof(dist_checkpoint_map_options), 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_checkpoint_map_options. */
DIST_API void dist_checkpoint_map_options_init(dist_checkpoint_map_options *options,
                                               uint32_t struct_size_bytes);

/**
 * A tensor without a copy: the value's elements are the file's, in memory that all values of this file share, whatever replica
 * reads them, as do other processes that map it. What is read comes into memory then; opening and mapping a file costs its
 * header.
 *
 *     dist_checkpoint_open(strategy, "model.safetensors", &file);
 *     dist_checkpoint_map_all(file, NULL, &weights);
 *     dist_checkpoint_destroy(file);                            the values keep what they need
 *     dist_run_values(strategy, infer, model, args, ...)        with `weights` in args: each replica finds the same
 *
 * Such a file is replaced by another one in its place (rename), as dist_checkpoint_save() does: values of the old one stay as
 * they are. A file that is written to while it is mapped may change values, and where it is cut short, the system ends who reads
 * what was cut (SIGBUS): where others do so, set options->copy. The elements must not be written. Who does writes to this
 * process's memory, not to the file.
 *
 * A tensor whose elements are not at a multiple of their size in the file is read, as with options->copy.
 *
 * Context  Strategy, concurrent.
 * Shape    The tensor's.
 * Order    The file's bits.
 * Blocks   While what is copied or verified is read.
 * Owns     *out_value is the caller's: dist_value_release(). It may outlive the checkpoint. options may be NULL.
 * Errors   As dist_checkpoint_read(), and
 *          INVALID_ARGUMENT    an option is neither 0 nor 1.
 *          DATA_LOSS           the file has become shorter since it was opened.
 *          RESOURCE_EXHAUSTED  no memory, or address space; UNAVAILABLE: in the system's words.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_map(const dist_checkpoint *checkpoint, const char *name,
                                                        const dist_checkpoint_map_options *options,
                                                        dist_value **out_value);

/** As dist_checkpoint_map(), of all tensors: a dictionary by their names. */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_map_all(const dist_checkpoint *checkpoint,
                                                            const dist_checkpoint_map_options *options,
                                                            dist_value **out_value);

/** How many metadata the file or the index has, libdist's among them; 0 for NULL. */
DIST_API size_t dist_checkpoint_num_metadata(const dist_checkpoint *checkpoint);

/**
 * The key of text `index`, in the order of the file; "" for NULL, and where there is none.
 *
 * Owns     Borrowed: valid while the checkpoint is.
 */
DIST_API const char *dist_checkpoint_metadata_key(const dist_checkpoint *checkpoint, size_t index);

/**
 * The text under a key; NULL where there is none, and for NULL.
 *
 * Owns     Borrowed: valid while the checkpoint is.
 */
DIST_API const char *dist_checkpoint_metadata(const dist_checkpoint *checkpoint, const char *key);

/**
 * Closes the file. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the checkpoint.
 */
DIST_API void dist_checkpoint_destroy(dist_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CHECKPOINT_EXPERIMENTAL_H */
