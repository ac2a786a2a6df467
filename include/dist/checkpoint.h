/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Checkpoints: save variables and the input position to a file, and load them again.
 *
 *     dist_position position = DIST_POSITION_INIT;
 *     dist_iterator_position(pass, &position);
 *     dist_checkpoint_options options = DIST_CHECKPOINT_OPTIONS_INIT;
 *     options.position = &position;
 *     dist_checkpoint_save(strategy, "model.safetensors", variables, n, &options);
 *     dist_checkpoint_load(strategy, "model.safetensors", variables, n, &options);
 *
 * A checkpoint is one safetensors file, a format that many programs read. It has one tensor per variable, under the
 * variable's name, and texts, its metadata. Keys of libdist begin with "libdist.": the input position
 * ("libdist.position.pass", ...) and checksums, which are verified when a file is read. "libdist.crc32:NAME" is the
 * CRC-32 (as in zlib) of the data of tensor NAME; "libdist.crc32" is that of the header, computed with zeros in place
 * of its own 8 digits. Files of other programs have no checksums and can still be read. A program that changes a file
 * but keeps its metadata must remove the keys of libdist.
 *
 * Saving is atomic. The file is written under another name in the same folder, ".dist-<16 hexadecimal digits>.tmp",
 * flushed to disk, and renamed over the old file. If a process or machine stops at any time, either the complete old
 * file or the complete new file remains. A killed process can leave the temporary file behind; nothing reads it, and
 * you can delete it.
 *
 * A sharded checkpoint is an index and the safetensors files that it names, its shards, in one folder. The index is a
 * JSON file in the format that other programs use ("model.safetensors.index.json"): "weight_map" has the file of each
 * tensor, "metadata" has the texts, "total_size" (the bytes of all data) and "libdist.crc32" (the checksum of the
 * index, computed like that of a header). A path to load or open can be that of an index, written by libdist or another
 * program, or of a symbolic link to one. The shards must be next to that path or, if it is a link, next to the index
 * that it leads to. libdist names a shard after the
 * index, 16 hexadecimal digits of the save, and the shard's number: "PATH.<digits>-00001-of-00003.safetensors". The
 * index and its shards store the digits as "libdist.save", so that a shard of another save is detected.
 */
#ifndef DIST_CHECKPOINT_H
#define DIST_CHECKPOINT_H

#include "dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of dist_checkpoint_save() and dist_checkpoint_load(). */
typedef struct dist_checkpoint_options {
  uint32_t struct_size;
  /* saving: 1 = `path` becomes an index, and each worker of the strategy writes its part of the variables to a
   * shard; 0 = one file, written by worker 0 */
  int32_t sharded;
  const char *const *names; /* names of the variables in the file; NULL = their own names */
  /* saving: position to store; loading: receives the stored position; may be NULL */
  dist_position *position;
  /* saving: keys of your own texts; not used for loading, see dist_checkpoint_metadata() */
  const char *const *metadata_keys;
  const char *const *metadata_texts; /* saving: the texts */
  size_t num_metadata;               /* number of keys and texts */
} dist_checkpoint_options;
#define DIST_CHECKPOINT_OPTIONS_INIT \
  { sizeof(dist_checkpoint_options), 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_checkpoint_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_checkpoint_options_init(dist_checkpoint_options *options, uint32_t struct_size_bytes);

/**
 * Writes a checkpoint. It can be loaded by any strategy with any number of replicas.
 *
 *     for i in 0 .. n-1:   tensor names[i] of the file = result of dist_variable_read() for variables[i]
 *
 * Data are written directly from the variable's memory. Only a variable whose value is computed from its copies is
 * buffered, one variable at a time. An existing file is replaced and gets the access rights of a new file. A symbolic
 * link is replaced itself; its target is unchanged.
 *
 * In a sharded checkpoint, each variable is in one shard, and the shards have about equal sizes. A worker without a
 * variable writes no shard. All workers must have access to the same folder. Worker 0 replaces the index when all
 * shards are on disk and visible to it; until then the complete old checkpoint remains. After that, shards of older
 * saves to this path are deleted. Shards of a failed or killed save can remain until the next successful one; nothing
 * reads them. Therefore, only one job at a time may save to a path.
 *
 * After an error, the old file at the path is unchanged and no other file remains, except for shards that worker 0
 * could not see or delete. With several workers, the new file can be in place if it was written but a worker could not
 * be notified.
 *
 * Context  Strategy, concurrent; also inside a merge function. The variables must not be written meanwhile.
 * Blocks   Until the file is on disk.
 * Errors   INVALID_ARGUMENT     an argument is NULL; two variables have the same name; a name or text is not UTF-8; a
 *                               key occurs twice or begins with "libdist."; the path is a folder, FIFO or device; a
 *                               variable has no single value (dist_variable_read()); `sharded` is neither 0 nor 1; the
 *                               position is invalid.
 *          FAILED_PRECONDITION  called inside a replica function or in a forked child; a variable of another strategy.
 *          NOT_FOUND            the folder does not exist; worker 0 does not find the shard of a worker.
 *          PERMISSION_DENIED    reported by the system.
 *          RESOURCE_EXHAUSTED   no space on the disk, or libdist is out of memory; the file exceeds the process's file
 *                               size limit (the process is not ended by SIGXFSZ).
 *          DATA_LOSS            reported by the system: the disk is faulty.
 *          UNAVAILABLE          reported by the system; with several workers also: a worker is lost.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns; with several workers
 *                               also: a worker did not make the call in time.
 *          CANCELLED            the strategy was shut down; with several workers also: dist_strategy_cancel() was
 *                               called.
 *          ABORTED              with several workers: a worker failed or made another call; the report names it.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_save(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

/**
 * Loads the values of variables from a checkpoint. The file may have additional tensors.
 *
 *     for i in 0 .. n-1:   dist_variable_assign(variables[i], DIST_ASSIGN, tensor names[i] of the file)
 *
 * Every copy gets the exact bits of the file; if the variable is a sum over copies, each copy gets its part.
 * Everything, including the checksums, is checked first, so that no variable changes if there is an error. The
 * exceptions are a disk failure and a file that is modified between its two readings: then the named variable and all
 * following ones are unspecified.
 *
 * Context  Strategy, serialized for a variable; also inside a merge function.
 * Blocks   Until all copies are written.
 * Owns     options->position->struct_size limits how many bytes of the position are written.
 * Errors   INVALID_ARGUMENT     an argument is NULL; a tensor and its variable differ in dtype or shape; the path is a
 *                               folder, FIFO or device; a variable does not accept a single value
 *                               (dist_variable_assign()).
 *          NOT_FOUND            the file, a tensor, the position or a shard of the index does not exist.
 *          DATA_LOSS            the file is not a safetensors file or index, or it is truncated or modified; the
 *                               message names the tensor.
 *          UNIMPLEMENTED        a tensor of the file has more than DIST_MAX_NDIM dimensions.
 *          FAILED_PRECONDITION  called inside a replica function or in a forked child; a variable of another strategy.
 *          PERMISSION_DENIED    reported by the system.
 *          RESOURCE_EXHAUSTED   reported by the system, or libdist is out of memory.
 *          UNAVAILABLE          reported by the system.
 *          DEADLINE_EXCEEDED    a run was in progress for longer than the strategy's timeout_ns.
 *          CANCELLED            the strategy was shut down.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_load(dist_strategy *strategy, const char *path,
                                                         dist_variable *const *variables, size_t n,
                                                         const dist_checkpoint_options *options);

/**
 * Opens a safetensors file, or the index of several, to inspect and read its tensors. If the file is replaced later,
 * the open checkpoint still reads the old one.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the headers are read.
 * Owns     The caller owns *out_checkpoint and destroys it with dist_checkpoint_destroy(). It may outlive the strategy.
 * Errors   Like dist_checkpoint_load(), for the file.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_open(dist_strategy *strategy, const char *path,
                                                         dist_checkpoint **out_checkpoint);

/** Returns the number of tensors in the file; 0 for NULL. */
DIST_API size_t dist_checkpoint_size(const dist_checkpoint *checkpoint);

/**
 * Returns the name of tensor `index`, in the order of the data or of the index file; "" for NULL or an invalid index.
 *
 * Owns     The result is borrowed: valid until the checkpoint is destroyed.
 */
DIST_API const char *dist_checkpoint_name(const dist_checkpoint *checkpoint, size_t index);

/**
 * Returns the dtype and shape of a tensor. `data` is NULL. dtype is 0 if libdist does not support the type (8-bit
 * floats and smaller). Such a tensor can still be read and mapped as bytes, see dist_checkpoint_read().
 *
 * Shape    That of the tensor.
 * Order    –
 * Owns     The shape is borrowed: valid until the checkpoint is destroyed.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 *          NOT_FOUND         the tensor does not exist.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_spec(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_tensor *out_spec);

/**
 * Reads a tensor into memory.
 *
 * If libdist does not support the dtype, the value has the bytes of the file as u8.
 *
 * Shape    That of the tensor. If libdist does not support the dtype and an element has fewer than 8 bits, the value
 *          has one dimension, the number of bytes.
 * Order    The bits of the file.
 * Blocks   While the tensor is read.
 * Owns     The caller owns *out_value and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT    an argument is NULL.
 *          NOT_FOUND           the tensor does not exist.
 *          DATA_LOSS           the data do not match the checksum.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_read(const dist_checkpoint *checkpoint, const char *name,
                                                         dist_value **out_value);

/** Options of dist_checkpoint_map() and dist_checkpoint_map_all(). */
typedef struct dist_checkpoint_map_options {
  uint32_t struct_size;
  int32_t copy;     /* 1 = read into new memory, like dist_checkpoint_read(); 0 = map the file */
  int32_t verify;   /* 1 = verify checksums of mapped data, which reads all of them; 0 = do not */
  int32_t reserved; /* must be 0 */
} dist_checkpoint_map_options;
#define DIST_CHECKPOINT_MAP_OPTIONS_INIT \
  { sizeof(dist_checkpoint_map_options), 0, 0, 0 }

/** Initializes a dist_checkpoint_map_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_checkpoint_map_options_init(dist_checkpoint_map_options *options,
                                               uint32_t struct_size_bytes);

/**
 * Maps a tensor without copying it.
 *
 *     dist_checkpoint_open(strategy, "model.safetensors", &file);
 *     dist_checkpoint_map_all(file, NULL, &weights);
 *     dist_checkpoint_destroy(file);                            // the values keep the mapping
 *     dist_run_values(strategy, infer, model, args, ...);       // with `weights` in args: all replicas share them
 *
 * The elements of the value are those of the file, in memory that all values of the file, all replicas, and other
 * processes that map the file share. Opening and mapping a file reads only its header; elements are read from disk on
 * first access.
 *
 * Replace a mapped file only by renaming another file over it, as dist_checkpoint_save() does; values of the old file
 * then stay valid. If another program writes to the file, the values can change, and if it truncates the file, an
 * access to the missing part raises SIGBUS. If this can happen, set options->copy. Do not write to the elements: a
 * write changes the memory of this process, not the file.
 *
 * If a tensor's elements are not aligned to their size in the file, the tensor is read as if options->copy were set.
 *
 * Context  Strategy, concurrent.
 * Shape    Like dist_checkpoint_read().
 * Order    The bits of the file.
 * Blocks   While data are copied or verified.
 * Owns     The caller owns *out_value and releases it with dist_value_release(). It may outlive the checkpoint. options
 *          may be NULL.
 * Errors   Like dist_checkpoint_read(), and
 *          INVALID_ARGUMENT    an option is neither 0 nor 1.
 *          DATA_LOSS           the file has become shorter since it was opened.
 *          RESOURCE_EXHAUSTED  memory or address space is exhausted.
 *          UNAVAILABLE         reported by the system.
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_map(const dist_checkpoint *checkpoint, const char *name,
                                                        const dist_checkpoint_map_options *options,
                                                        dist_value **out_value);

/**
 * Maps all tensors of the file; *out_value is a dictionary of them by name. Otherwise like dist_checkpoint_map().
 *
 * Context  Strategy, concurrent.
 * Blocks   While data are copied or verified.
 * Owns     The caller owns *out_value and releases it with dist_value_release(). It may outlive the checkpoint. options
 *          may be NULL.
 * Errors   Like dist_checkpoint_map().
 */
DIST_API DIST_NODISCARD dist_status dist_checkpoint_map_all(const dist_checkpoint *checkpoint,
                                                            const dist_checkpoint_map_options *options,
                                                            dist_value **out_value);

/** Returns the number of metadata texts of the file or index, including those of libdist; 0 for NULL. */
DIST_API size_t dist_checkpoint_num_metadata(const dist_checkpoint *checkpoint);

/**
 * Returns the key of metadata text `index`, in the order of the file; "" for NULL or an invalid index.
 *
 * Owns     The result is borrowed: valid until the checkpoint is destroyed.
 */
DIST_API const char *dist_checkpoint_metadata_key(const dist_checkpoint *checkpoint, size_t index);

/**
 * Returns the metadata text under a key; NULL if there is none or an argument is NULL.
 *
 * Owns     The result is borrowed: valid until the checkpoint is destroyed.
 */
DIST_API const char *dist_checkpoint_metadata(const dist_checkpoint *checkpoint, const char *key);

/**
 * Closes the file. Does nothing if `checkpoint` is NULL. Values that were read or mapped stay valid.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the checkpoint.
 */
DIST_API void dist_checkpoint_destroy(dist_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif
#endif /* DIST_CHECKPOINT_H */
