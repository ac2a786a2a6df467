// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import org.libdist.internal.dist_coordinator_stats;

/**
 * The counters of a coordinator.
 *
 * @param numParameterServers parameter servers of the cluster
 * @param numWorkers workers of the cluster
 * @param workersUp workers that have closures or can take some
 * @param queued closures that no worker has
 * @param inFlight closures that a worker has
 * @param scheduled total number of closures
 * @param completed closures that finished without an error
 * @param failed closures that failed
 * @param cancelled closures that were cancelled
 * @param losses how often a closure was lost with its worker
 * @param mark all closures with lower numbers have finished
 * @param bytesSent message bytes sent to all servers, without the overhead of gRPC
 * @param bytesReceived message bytes received from all servers
 */
public record CoordinatorStats(int numParameterServers, int numWorkers, int workersUp, long queued,
        long inFlight, long scheduled,
        long completed, long failed, long cancelled, long losses, long mark, long bytesSent, long bytesReceived) {
    static CoordinatorStats of(dist_coordinator_stats raw) {
        return new CoordinatorStats(raw.getNum_ps(), raw.getNum_workers(), raw.getWorkers_up(), raw.getQueued(),
                raw.getIn_flight(), raw.getScheduled(), raw.getCompleted(), raw.getFailed(), raw.getCancelled(),
                raw.getLosses(), raw.getMark(), raw.getBytes_sent(), raw.getBytes_received());
    }
}
