// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_coordinator_stats;

/**
 * What a coordinator does, in numbers.
 *
 * @param numPs parameter servers of the cluster
 * @param numWorkers workers of the cluster
 * @param workersUp that have work, or may have it
 * @param queued closures that no worker has
 * @param inFlight closures that one has
 * @param scheduled closures in all
 * @param completed that ended well
 * @param failed that failed
 * @param cancelled that were cancelled
 * @param losses how often a closure came back from a worker
 * @param mark all closures below have ended
 * @param bytesSent to all servers: messages, without what gRPC adds
 * @param bytesReceived from all servers
 */
public record CoordinatorStats(int numPs, int numWorkers, int workersUp, long queued, long inFlight, long scheduled,
        long completed, long failed, long cancelled, long losses, long mark, long bytesSent, long bytesReceived) {
    static CoordinatorStats of(dist_coordinator_stats raw) {
        return new CoordinatorStats(raw.getNum_ps(), raw.getNum_workers(), raw.getWorkers_up(), raw.getQueued(),
                raw.getIn_flight(), raw.getScheduled(), raw.getCompleted(), raw.getFailed(), raw.getCancelled(),
                raw.getLosses(), raw.getMark(), raw.getBytes_sent(), raw.getBytes_received());
    }
}
