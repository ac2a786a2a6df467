/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Versions: something that all replicas read, weights for example, and that is replaced while they run.
 *
 *     dist_versions_create(NULL, &versions);
 *     dist_versions_publish(versions, load_model("v1"), release_model, NULL, NULL);
 *
 *     in a function:   dist_replica_version(replica, versions, (void **)&model, NULL);    the same one to its end
 *     to replace it:   dist_versions_publish(versions, load_model("v2"), release_model, NULL, &number);
 *                      dist_versions_await(versions, number, -1);                         v1 has been released
 *
 * All replicas of a run see one version, and so do their logical devices: the latest when the first of them asks. A request
 * (dist_submit()) is a run of one. A run sees the same version to its end, whatever is published meanwhile, and a version
 * stays until it is neither the latest nor seen by a run.
 *
 * Tensors of a file are shared by all replicas without a copy: dist_checkpoint_map(). What an engine makes of them, packed
 * weights for example, is made once and published with them.
 */
#ifndef DIST_VERSION_H
#define DIST_VERSION_H

#include "run.h"

#endif /* DIST_VERSION_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_VERSION_EXPERIMENTAL_H)
#define DIST_VERSION_EXPERIMENTAL_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is replaced under the replicas: a series of versions, of which one is the latest. */
typedef struct dist_versions dist_versions;

/**
 * Ends a version that nobody sees any more. It is called once, on the thread that lets go of it last: one that publishes, that
 * destroys the versions, or a replica's at the end of its run.
 */
typedef void (*dist_version_release_fn)(void *content, void *user_data);

/**
 * Makes a series without a version. `allocator` may be NULL: malloc() and free().
 *
 * Owns     *out_versions is the caller's: dist_versions_destroy().
 * Errors   INVALID_ARGUMENT    out_versions is NULL; one of the allocator's functions is there without the other.
 *          RESOURCE_EXHAUSTED  no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_create(const dist_allocator *allocator, dist_versions **out_versions);

/**
 * Makes `content` the latest version. *out_number is its number: 1, 2, 3 and so on; out_number may be NULL.
 *
 * Context  Any thread, concurrent; also inside a replica, whose run goes on with the version that it sees.
 * Blocks   Never, but for the `release` of a version before, where nobody sees that.
 * Owns     content, until `release` is called with it and user_data; not where this fails. release may be NULL.
 * Errors   INVALID_ARGUMENT     versions or content is NULL.
 *          RESOURCE_EXHAUSTED   no memory. The latest version stays.
 *          FAILED_PRECONDITION  a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_publish(dist_versions *versions, void *content,
                                                          dist_version_release_fn release, void *user_data,
                                                          int64_t *out_number);

/**
 * The version that this replica's run sees: *out_content, borrowed until the run ends, and its number.
 *
 * Context  Replica, or logical device; also in a request's function, a batcher's step, and a function that makes or warms up an
 *          instance's state, each of which is a run of its own.
 * Blocks   Never.
 * Errors   INVALID_ARGUMENT     replica, versions or out_content is NULL; out_number may be NULL.
 *          FAILED_PRECONDITION  no version has been published; the handle is not this thread's.
 *          RESOURCE_EXHAUSTED   no memory: the first time that a run of this strategy sees as many series.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_version(dist_replica *replica, dist_versions *versions,
                                                         void **out_content, int64_t *out_number);

/** The number of the latest version; 0: there is none, or NULL. Any thread. */
DIST_API int64_t dist_versions_latest(const dist_versions *versions);

/**
 * Waits until all versions before `number` have been released.
 *
 * Context  Any thread, concurrent; outside the replicas' functions.
 * Blocks   At most timeout_ns (0: not at all; < 0: no limit).
 * Errors   INVALID_ARGUMENT     versions is NULL; `number` is not in 1 .. dist_versions_latest().
 *          FAILED_PRECONDITION  inside a replica's function, whose run may see such a version; a forked child.
 *          DEADLINE_EXCEEDED    runs still see some: the message says which versions, and by how many runs.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_await(dist_versions *versions, int64_t number, int64_t timeout_ns);

/**
 * Gives up the series. The latest version is released when no run sees it any more. NULL is fine.
 *
 * Context  Any thread; not while another one is in a call with it. Runs that see a version may be under way.
 * Owns     Takes the handle.
 */
DIST_API void dist_versions_destroy(dist_versions *versions);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VERSION_EXPERIMENTAL_H */
