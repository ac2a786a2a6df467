/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * What went wrong: statuses as words, and the latest error of a thread. Also the version that runs, and the names of what
 * types.h numbers, as TensorFlow has them.
 *
 * Texts that come out of any function are UTF-8 without control characters, whatever the host put into tags and messages: a
 * byte that is no UTF-8 becomes U+FFFD, a control character `\n`, `\t` or `\x` and two digits. An error's message may have
 * several lines. Texts and keys of values stay as they are.
 */
#ifndef DIST_ERROR_H
#define DIST_ERROR_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DIST_VERSION_MAJOR 0
#define DIST_VERSION_MINOR 2
#define DIST_VERSION_PATCH 0

/** The version of the library that runs: major * 10000 + minor * 100 + patch. */
DIST_API int32_t dist_version(void);

/**
 * Returns 1 if this process can use an optional feature now, and 0 if it cannot or the name is unknown.
 *
 *     "numa"     the layout of CPUs and NUMA domains, if libdist was built with hwloc
 *     "pinning"  threads on CPUs of their own (DIST_PLACEMENT_CORES); always 1
 *     "isal"     fast checksums of checkpoints, if libdist was built with ISA-L
 *     "grpc"     workers that are processes, if libdist-grpc.so can be loaded
 *     "gloo"     DIST_TRANSPORT_GLOO, if libdist-gloo.so can be loaded
 *
 * For "grpc" and "gloo" this loads the library, which stays in the process. If that fails, dist_last_error() gives the
 * reason.
 *
 * Blocks   For "grpc" and "gloo", while the library is loaded.
 */
DIST_API int32_t dist_has_feature(const char *name);

/**
 * A status as a word, "INVALID_ARGUMENT"; "UNKNOWN_STATUS" for a number that this version does not have.
 *
 * Owns     The text is static.
 */
DIST_API const char *dist_status_name(dist_status status);

/**
 * What this thread's latest failing call has to say: UTF-8, never NULL, "" before the first failure.
 * After dist_run() failed it is the text of the replica that failed first, or the report on a collective
 * that did not come together.
 *
 * Owns     The library's; valid until this thread's next failing call.
 */
DIST_API const char *dist_last_error(void);

/** The latest error as fields. Texts are never NULL; "" where there is nothing to say. */
typedef struct dist_error_info {
  uint32_t struct_size;
  dist_status code;
  int32_t worker;         /* the culprit's process; 0 in a strategy of one process */
  int32_t replica;        /* the culprit's id; -1: no replica is to blame */
  int32_t collective;     /* a DIST_COLLECTIVE_... */
  int32_t group;          /* which group of replicas met; 0: all */
  int64_t sequence;       /* the collective's number in this run, from 1; 0: outside a collective */
  const char *message;    /* dist_last_error() */
  const char *tag;        /* of the collective */
  const char *expected;   /* what the majority, or the lowest id, asked for */
  const char *received;   /* what the culprit asked for, or that it left or did not come */
  const char *hint;       /* what to try */
  int32_t logical_device; /* which of the culprit's; -1: the replica as a whole */
  int32_t inside;         /* a run past its deadline: how many of its functions had not returned; else 0 */
} dist_error_info;
#define DIST_ERROR_INFO_INIT \
  { sizeof(dist_error_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * This thread's latest error as fields. `out_info->struct_size` says how much of it to write.
 *
 * Owns     The texts are the library's; valid until this thread's next failing call.
 * Errors   INVALID_ARGUMENT  out_info is NULL or its struct_size is too small. The error stays as it was.
 */
DIST_API DIST_NODISCARD dist_status dist_last_error_info(dist_error_info *out_info);

/**
 * Sets this thread's error text and returns `status`: `return dist_fail(DIST_NOT_FOUND, "no row 7");` in a
 * callback makes that text the one which dist_run()'s caller sees.
 *
 * Owns     The text is copied, and cut at 1,023 bytes.
 * Errors   `status`, or INVALID_ARGUMENT where that is DIST_OK.
 */
DIST_API dist_status dist_fail(dist_status status, const char *message);

#ifdef __cplusplus
}
#endif
#endif /* DIST_ERROR_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_ERROR_EXPERIMENTAL_H)
#define DIST_ERROR_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The enums of types.h whose values have names. 0 is no domain, so that a forgotten one is an error. */
enum {
  DIST_ENUM_STATUS = 1,    /* DIST_OK ...: "OK", "INVALID_ARGUMENT" */
  DIST_ENUM_DTYPE = 2,     /* DIST_F16 ...: "f16", as messages have it */
  DIST_ENUM_REDUCE_OP = 3, /* DIST_REDUCE_...: "SUM", "MEAN", and the further operators of collectives */
  DIST_ENUM_VALUE_REDUCTION = 4, /* "SUM", "MEAN": TensorFlow's ReduceOp, what dist_reduce() takes */
  DIST_ENUM_COLLECTIVE = 5,      /* DIST_COLLECTIVE_..., but for NONE: "all_reduce", as messages have it */
  DIST_ENUM_SYNCHRONIZATION = 6, /* DIST_SYNCHRONIZATION_...: "ON_READ" */
  DIST_ENUM_AGGREGATION = 7,     /* DIST_AGGREGATION_...: "ONLY_FIRST_REPLICA" */
  DIST_ENUM_COMMUNICATION = 8,   /* DIST_COMMUNICATION_...: "RING" */
  DIST_ENUM_CROSS_DEVICE = 9,    /* DIST_CROSS_DEVICE_...: "HIERARCHICAL_COPY" */
  DIST_ENUM_INPUT_MODE = 10,     /* DIST_INPUT_...: "PER_WORKER" */
  DIST_ENUM_SHARD_POLICY = 11    /* DIST_SHARD_...: "AUTO" */
};

/**
 * The name of an enum's value: TensorFlow's, where TensorFlow has one. `domain` is a DIST_ENUM_...; NULL for a domain or a
 * value that this version does not have.
 *
 * Owns     The text is static.
 * Since    0.2
 */
DIST_API const char *dist_enum_name(int32_t domain, int32_t value);

/**
 * The value of such a name, in any case: for settings that are read from a file or a command line.
 *
 * Errors   INVALID_ARGUMENT  NULL, or another name or domain; the message says which there are.
 * Since    0.2
 */
DIST_API DIST_NODISCARD dist_status dist_enum_from_name(int32_t domain, const char *name, int32_t *out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_ERROR_EXPERIMENTAL_H */
