// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;

/**
 * A job of a cluster: some tasks that do the same.
 *
 * @param name what it is called: "worker"
 * @param addresses of its tasks, "host:port"
 * @param taskIndices as many as addresses; empty: 0, 1, ...
 */
public record ClusterJob(String name, List<String> addresses, List<Integer> taskIndices) {
    /** A job of tasks with indices. */
    public ClusterJob {
        Objects.requireNonNull(name, "name");
        addresses = List.copyOf(Objects.requireNonNull(addresses, "addresses"));
        taskIndices = List.copyOf(Objects.requireNonNull(taskIndices, "taskIndices"));
        if (!taskIndices.isEmpty() && taskIndices.size() != addresses.size()) {
            throw new IllegalArgumentException("job " + name + " has " + addresses.size() + " addresses and "
                    + taskIndices.size() + " indices");
        }
    }

    /** A job of tasks 0, 1, ... */
    public ClusterJob(String name, List<String> addresses) {
        this(name, addresses, List.of());
    }
}
