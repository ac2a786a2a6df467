/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Error handling: status names and the latest error of each thread. This header also has the library version and the
 * names of enum values.
 *
 *     if (dist_run(strategy, step, NULL, NULL) != DIST_OK) {
 *       dist_error_info info = DIST_ERROR_INFO_INIT;
 *       if (dist_last_error_info(&info) == DIST_OK)
 *         fprintf(stderr, "replica %d: %s (%s)\n", (int)info.replica, info.message, info.hint);
 *     }
 *
 * Each thread has its own latest error. Only a failing call replaces it; a successful call leaves it unchanged.
 *
 * All texts that libdist returns are UTF-8 without control characters, whatever your program passed in tags and
 * messages: a byte that is not valid UTF-8 becomes U+FFFD, and a control character becomes `\n`, `\t`, or `\x` and two
 * hexadecimal digits. An error message can have several lines. Texts and dictionary keys inside values are returned
 * unchanged.
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

/** The version of the headers, as dist_version() returns it for the library. */
#define DIST_VERSION (DIST_VERSION_MAJOR * 10000 + DIST_VERSION_MINOR * 100 + DIST_VERSION_PATCH)

/** Returns the version of the loaded library: major * 10000 + minor * 100 + patch. */
DIST_API int32_t dist_version(void);

/**
 * Returns 1 if this process can use an optional feature now, and 0 if it cannot or the name is unknown.
 *
 *     "numa"     the layout of CPUs and NUMA domains, if libdist was built with hwloc
 *     "pinning"  threads on CPUs of their own (DIST_PLACEMENT_CORES); always 1
 *     "isal"     fast checksums of checkpoints, if libdist was built with ISA-L
 *     "grpc"     workers that are processes, if libdist-grpc.so can be loaded
 *     "gloo"     DIST_TRANSPORT_GLOO, if libdist-gloo.so and libdist-grpc.so can be loaded
 *     "onednn"   always 0: only an example program uses oneDNN
 *
 * For "grpc" and "gloo" this loads the library, which stays in the process. If that fails, dist_last_error() gives the
 * reason.
 *
 * Blocks   For "grpc" and "gloo", while the library is loaded.
 */
DIST_API int32_t dist_has_feature(const char *name);

/**
 * Returns the name of a status, for example "INVALID_ARGUMENT", or "UNKNOWN_STATUS" if this version does not know it.
 *
 * Owns     The text is static.
 */
DIST_API const char *dist_status_name(dist_status status);

/**
 * Returns the message of this thread's latest failing call: UTF-8, never NULL, "" before the first failure.
 *
 * After a failed dist_run(), this is the message of the first replica that failed, or the report of the collective that
 * failed.
 *
 * Owns     The library owns the text. It is valid until this thread's next failing call.
 */
DIST_API const char *dist_last_error(void);

/** The latest error as fields. Texts are never NULL; a text that does not apply is "". */
typedef struct dist_error_info {
  uint32_t struct_size;
  dist_status code;
  int32_t worker;  /* worker at fault; 0 in a strategy of one process */
  int32_t replica; /* id of the replica at fault; -1 = none */
  dist_collective collective;
  int32_t group;       /* number of the group of replicas; 0 = all replicas */
  int64_t sequence;    /* number of the collective in this run, from 1; 0 = outside a collective */
  const char *message; /* same text as dist_last_error() */
  const char *tag;     /* tag of the collective */
  const char *
      expected; /* what most replicas, or the one with the lowest id, requested; of an argument, what it must be */
  const char *
      received; /* what the replica at fault requested, or that it left or did not arrive; of an argument, what it is */
  const char *hint;       /* how to fix the error */
  int32_t logical_device; /* logical device of the replica at fault; -1 = the whole replica */
  int32_t inside;         /* functions still running when the run's deadline expired; otherwise 0 */
  const char *function;   /* function of this API that failed, for example "dist_run" */
  const char *parameter;  /* argument or field at fault, for example "options->group" */
} dist_error_info;
#define DIST_ERROR_INFO_INIT \
  { sizeof(dist_error_info), 0, 0, 0, DIST_COLLECTIVE_NONE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/**
 * Writes this thread's latest error as fields, up to out_info->struct_size bytes.
 *
 * Owns     The library owns the texts. They are valid until this thread's next failing call.
 * Errors   INVALID_ARGUMENT  out_info is NULL or its struct_size is too small. The latest error is unchanged.
 */
DIST_API DIST_NODISCARD dist_status dist_last_error_info(dist_error_info *out_info);

/**
 * The same as dist_last_error_info(), for bindings: in `message`, `expected`, `received` and `hint`, each name of the C
 * API is between the bytes 0x0E and 0x0F, so that a binding can replace it by a name of its own language.
 *
 * Such a name is a function with its parentheses, a parameter or field, a constant (DIST_REDUCE_... is the whole enum),
 * NULL, the verb "destroy", or the caller's "thread". `function` and `parameter` are single names, without these bytes.
 * Call it before dist_last_error() and dist_last_error_info(), which remove the marks.
 *
 * Owns     As dist_last_error_info().
 * Errors   As dist_last_error_info().
 */
DIST_API DIST_NODISCARD dist_status dist_last_error_marked(dist_error_info *out_info);

/**
 * Sets this thread's error message and returns `status`.
 *
 *     if (row == NULL) return dist_fail(DIST_NOT_FOUND, "no row 7");
 *
 * In a callback, this makes the message the one that the caller of dist_run() sees.
 *
 * The message may have the marks of dist_last_error_marked(), which the caller of dist_last_error() does not see.
 *
 * Owns     The message is copied and truncated to 1,023 bytes. NULL means "".
 * Errors   `status`, or INVALID_ARGUMENT if `status` is DIST_OK.
 */
DIST_API dist_status dist_fail(dist_status status, const char *message);

/**
 * Returns the name of an enum value; this is TensorFlow's name if TensorFlow has one.
 *
 * `domain` is a DIST_ENUM_... constant. Returns NULL if this version does not know the domain or the value.
 *
 * Owns     The text is static.
 * Since    0.2
 */
DIST_API const char *dist_enum_name(dist_enum_domain domain, int32_t value);

/**
 * Finds the enum value with a name, ignoring case. Use it to parse settings from files and command lines.
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, or the name or the domain is unknown; the message lists the known
 *                            names.
 * Since    0.2
 */
DIST_API DIST_NODISCARD dist_status dist_enum_from_name(dist_enum_domain domain, const char *name,
                                                        int32_t *out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_ERROR_H */
