/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Versions: replace data that all replicas read, such as model weights, while they run.
 *
 *     dist_versions *versions = NULL;
 *     dist_versions_create(NULL, &versions);
 *     dist_versions_publish(versions, load_model("v1"), release_model, NULL, NULL);
 *
 *     // in a replica function or a request
 *     void *model = NULL;
 *     dist_replica_version(replica, versions, &model, NULL);               // the same version until the function ends
 *
 *     // to replace it
 *     int64_t number = 0;
 *     dist_versions_publish(versions, load_model("v2"), release_model, NULL, &number);
 *     dist_versions_await(versions, number, DIST_NO_TIMEOUT);              // v1 has been released
 *
 * All replicas of a run see the same version until the run ends, whatever is published meanwhile: the version that is
 * latest when the first of them asks. This includes their logical devices and runs inside their merge functions. A
 * request (dist_submit()) counts as a run of one replica. libdist keeps a version until a newer one is published and no
 * run sees it any more. Over several workers, each process has its own series, and its replicas see the versions in it.
 *
 * A run that has returned at its deadline keeps its versions until its functions have returned and another run of the
 * strategy has ended after that, or until the strategy is destroyed. The same applies to a run on devices. Host threads
 * (dist_replica_enter()) keep a version until all of them have left; if some never entered, until the next run starts
 * or the strategy is destroyed.
 *
 * All replicas can share the tensors of a file without copying them: dist_checkpoint_map(). If an engine derives other
 * data from them, such as packed weights, compute it once and publish it together with them.
 */
#ifndef DIST_VERSION_H
#define DIST_VERSION_H

#include "run.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A series of versions, of which one is the latest. */
typedef struct dist_versions dist_versions;

/**
 * Releases a version that no run sees any more. libdist calls it once, on the thread that stops using the version last:
 * a thread that publishes or destroys the versions, the caller of dist_run() before the call returns, the last host
 * thread to leave its run, an instance at the end of its request, or a thread that destroys the strategy. libdist holds
 * no locks during the call, and the thread continues when it returns. It may publish, run and submit, but must not wait
 * for a request or a version.
 */
typedef void (*dist_version_release_fn)(void *content, void *user_data);

/**
 * Creates an empty series of versions. `allocator` may be NULL, which selects malloc() and free(). It is used until the
 * series has been destroyed and its last version released.
 *
 * Owns     The caller owns *out_versions and destroys it with dist_versions_destroy().
 * Errors   INVALID_ARGUMENT    out_versions is NULL, or only one of the allocator's functions is set.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_create(const dist_allocator *allocator,
                                                         dist_versions **out_versions);

/**
 * Makes `content` the latest version. *out_number receives its number: 1, 2, 3 and so on; out_number may be NULL.
 *
 * Context  Any, concurrent; also inside a replica, whose run continues with the version that it sees.
 * Blocks   Only for the `release` of an earlier version that no run sees.
 * Owns     libdist takes `content`, unless the call fails, and gives it up by calling `release` with it and user_data.
 *          release may be NULL.
 * Errors   INVALID_ARGUMENT     versions or content is NULL.
 *          RESOURCE_EXHAUSTED   out of memory. The latest version does not change.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_publish(dist_versions *versions, void *content,
                                                          dist_version_release_fn release, void *user_data,
                                                          int64_t *out_number);

/**
 * Returns the version that this replica's run sees in *out_content, and its number in *out_number, which may be NULL.
 *
 * Context  Replica, or logical device; also in the function of a request, a batcher's step, and a function that creates
 *          or warms up an instance's state, each of which counts as a run of its own.
 * Owns     *out_content is borrowed until the run ends.
 * Errors   INVALID_ARGUMENT     replica, versions or out_content is NULL.
 *          FAILED_PRECONDITION  no version has been published; the handle belongs to another thread, or is that of
 *                               dist_get_replica() outside runs; or this is a forked child.
 *          RESOURCE_EXHAUSTED   out of memory; possible only the first time that a run of this strategy sees this many
 *                               series.
 */
DIST_API DIST_NODISCARD dist_status dist_replica_version(dist_replica *replica, dist_versions *versions,
                                                         void **out_content, int64_t *out_number);

/** Returns the number of the latest version; 0 if there is none, or for NULL. */
DIST_API int64_t dist_versions_latest(const dist_versions *versions);

/**
 * Waits until all versions before `number` have been released, that is until their `release` has returned.
 *
 * Context  Any, concurrent; outside replica functions.
 * Blocks   Up to timeout_ns (0: does not wait).
 * Errors   INVALID_ARGUMENT     versions is NULL, `number` is not in 1 .. dist_versions_latest(), or timeout_ns is
 *                               below DIST_NO_TIMEOUT.
 *          FAILED_PRECONDITION  called inside a replica function (even a detached one), because its run may see such a
 *                               version; or in a forked child.
 *          DEADLINE_EXCEEDED    runs still see some of them: the message lists the versions, and the number of runs for
 *                               each.
 */
DIST_API DIST_NODISCARD dist_status dist_versions_await(dist_versions *versions, int64_t number,
                                                        int64_t timeout_ns);

/**
 * Destroys the series. The latest version is released when no run sees it any more. Does nothing if `versions` is NULL.
 *
 * Context  Any, but not while another thread is in a call with it. Runs that see a version may be in progress.
 * Owns     Takes ownership of the handle.
 */
DIST_API void dist_versions_destroy(dist_versions *versions);

#ifdef __cplusplus
}
#endif
#endif /* DIST_VERSION_H */
