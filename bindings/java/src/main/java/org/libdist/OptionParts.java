// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.libdist.internal.ClusterJobs;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_apply_options;
import org.libdist.internal.dist_checkpoint_options;
import org.libdist.internal.dist_communication_options;
import org.libdist.internal.dist_devices_options;
import org.libdist.internal.dist_preemption_options;
import org.libdist.internal.dist_slurm_options;
import org.libdist.internal.dist_strategy_options;

/** Sets the options that consist of several values. The generated classes of options call these methods. */
final class OptionParts {
    private OptionParts() {}

    // ---- Of a strategy ----

    static void functions(dist_strategy_options options, StrategyFunctions functions, Tokens tokens) {
        if (functions != null) {
            options.set_functions(tokens.add(CrossDeviceTarget.of(functions)), functions.sharesOneCopy() ? 1 : 0,
                    1, CrossDeviceTarget.hasOwnBroadcast(functions) ? 1 : 0,
                    CrossDeviceTarget.hasOwnGather(functions) ? 1 : 0);
        }
    }

    static void executor(dist_strategy_options options, LoopTarget executor, Tokens tokens) {
        if (executor != null) {
            options.set_executor(tokens.add(executor), executor.numThreads());
        }
    }

    static void axes(dist_strategy_options options, List<MeshAxis> axes) {
        if (axes != null) {
            options.set_axes(Texts.all(axes.stream().map(MeshAxis::name).toList()),
                    axes.stream().mapToInt(MeshAxis::size).toArray(), axes.size());
        }
    }

    // ---- Of other objects and calls ----

    static CommunicationOptions merge(CommunicationOptions base, CommunicationOptions over) {
        try (Uses uses = new Uses()) {
            dist_communication_options out = CommunicationOptions.DEFAULT.toNative(uses);
            DistModule.dist_communication_options_merge(
                    base.toNative(uses), over == null ? null : over.toNative(uses), out);
            return CommunicationOptions.of(out);
        }
    }

    static void states(dist_apply_options options, List<List<Tensor>> states, Uses uses) {
        if (states != null && !states.isEmpty()) {
            long[] numbers = uses.written(states.stream().flatMap(List::stream).toList());
            options.set_states(numbers, numbers.length, states.size());
        }
    }

    static void metadata(dist_checkpoint_options options, Map<String, String> metadata) {
        if (metadata != null) {
            List<String> keys = List.copyOf(metadata.keySet());
            options.set_metadata_keys(Texts.all(keys), keys.size());
            options.set_metadata_texts(Texts.all(List.copyOf(metadata.values())), keys.size());
        }
    }

    static void results(dist_devices_options options, List<Partition> results, Uses uses) {
        if (results != null) {
            results.forEach(result -> options.add_result(result.toNative(uses)));
        }
    }

    static void variables(dist_preemption_options options, List<Variable> variables, Uses uses) {
        if (variables != null) {
            options.set_variables(uses.all(variables, "variables"), variables.size());
        }
    }

    /** Returns a copy, in which nothing is null. */
    static Map<String, Integer> jobs(Map<String, Integer> jobs) {
        Map<String, Integer> kept = new LinkedHashMap<>();
        Objects.requireNonNull(jobs, "jobs")
                .forEach((name, tasks)
                                 -> kept.put(Objects.requireNonNull(name, "a job's name in jobs"),
                                         Objects.requireNonNull(tasks, "a job's number of tasks in jobs")));
        return Collections.unmodifiableMap(kept);
    }

    static void jobs(dist_slurm_options options, Map<String, Integer> jobs, Uses uses) {
        if (jobs != null) {
            ClusterJobs rows = new ClusterJobs();
            uses.defer(rows::delete);
            jobs.forEach((name, tasks) -> rows.add(Texts.bytes(name), null, null, tasks));
            options.set_jobs(rows);
        }
    }
}
