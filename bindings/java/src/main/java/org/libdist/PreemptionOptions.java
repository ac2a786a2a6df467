// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.dist_preemption_options;

/** Options of a {@link PreemptionHandler}. Immutable: each method returns a new set of options. */
public final class PreemptionOptions {
    /** The default options: no checkpoint; the program saves. */
    public static final PreemptionOptions DEFAULT = new PreemptionOptions(null, List.of(), 0);

    private final Path path; // null: the program saves
    private final List<Variable> variables;
    private final long graceNanos;

    private PreemptionOptions(Path path, List<Variable> variables, long graceNanos) {
        this.path = path;
        this.variables = variables;
        this.graceNanos = graceNanos;
    }

    /** Sets the path of the checkpoint, one file for all workers. */
    public PreemptionOptions path(Path path) {
        return new PreemptionOptions(Objects.requireNonNull(path, "path"), variables, graceNanos);
    }

    /** Sets the variables in the checkpoint; the handler retains them. */
    public PreemptionOptions variables(List<Variable> variables) {
        return new PreemptionOptions(
                path, List.copyOf(Objects.requireNonNull(variables, "variables")), graceNanos);
    }

    /** Sets how long the job continues after the notice; zero means that it saves and ends. */
    public PreemptionOptions grace(Duration grace) {
        return new PreemptionOptions(path, variables, Durations.nanos(grace, "grace"));
    }

    List<Variable> variables() {
        return variables;
    }

    dist_preemption_options toNative(Uses uses) {
        dist_preemption_options options = new dist_preemption_options();
        uses.defer(options::delete);
        if (path != null) {
            options.setPath(Texts.bytes(path.toString()));
        }
        options.set_variables(uses.all(variables, "variables"), variables.size());
        options.setGrace_ns(graceNanos);
        return options;
    }
}
