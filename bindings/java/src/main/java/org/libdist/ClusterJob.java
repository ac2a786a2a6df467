// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;

/**
 * A job of a cluster: a name and a list of tasks.
 *
 * @param name the name: "worker"
 * @param addresses addresses of the tasks, "host:port"
 * @param taskIndices one index per address; empty means 0, 1, ...
 */
public record ClusterJob(String name, List<String> addresses, List<Integer> taskIndices) {
    /** Creates a job whose tasks have the given indices. */
    public ClusterJob {
        Objects.requireNonNull(name, "name");
        addresses = List.copyOf(Objects.requireNonNull(addresses, "addresses"));
        taskIndices = List.copyOf(Objects.requireNonNull(taskIndices, "taskIndices"));
        if (!taskIndices.isEmpty() && taskIndices.size() != addresses.size()) {
            throw new IllegalArgumentException("job " + name + " has " + addresses.size() + " addresses and "
                    + taskIndices.size() + " indices");
        }
    }

    /** Creates a job with the tasks 0, 1, ... */
    public ClusterJob(String name, List<String> addresses) {
        this(name, addresses, List.of());
    }
}
