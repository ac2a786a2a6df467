// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.libdist.internal.dist_preemption_options;

/** The choices for a {@link PreemptionHandler}. Immutable: each method gives another set of options. */
public final class PreemptionOptions {
    /** Without a checkpoint: the program saves. */
    public static final PreemptionOptions DEFAULT = new PreemptionOptions(null, List.of(), 0);

    private final Path path; // null: the program saves
    private final List<Variable> variables;
    private final long graceNanos;

    private PreemptionOptions(Path path, List<Variable> variables, long graceNanos) {
        this.path = path;
        this.variables = variables;
        this.graceNanos = graceNanos;
    }

    /** The checkpoint's, one file for all workers. */
    public PreemptionOptions path(Path path) {
        return new PreemptionOptions(Objects.requireNonNull(path, "path"), variables, graceNanos);
    }

    /** What is in it; the handler holds them. */
    public PreemptionOptions variables(List<Variable> variables) {
        return new PreemptionOptions(
                path, List.copyOf(Objects.requireNonNull(variables, "variables")), graceNanos);
    }

    /** How long the job may go on after the notice; zero: it saves and ends. */
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
