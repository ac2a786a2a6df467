// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import org.libdist.internal.ClusterJobs;
import org.libdist.internal.DistModule;
import org.libdist.internal.DistModuleConstants;

/**
 * Which processes there are: jobs by name, each with its tasks' addresses. Immutable; nothing is connected
 * to. A task is named by its type, which is its job's name, and its id, which is its index there; either may
 * be missing, as null and empty.
 *
 * <pre>{@code
 * ClusterSpec spec = ClusterSpec.of(Map.of("worker", List.of("a:1", "b:2")));
 * spec.shouldSaveCheckpoint("worker", OptionalInt.of(0));
 * }</pre>
 */
public final class ClusterSpec extends NativeObject {
    ClusterSpec(long handle) {
        super(new Native("cluster spec", handle, DistModule::dist_cluster_spec_destroy));
    }

    /** Of jobs, each with the addresses of its tasks 0, 1, ..., in the order of the map. */
    public static ClusterSpec of(Map<String, List<String>> jobs) {
        Objects.requireNonNull(jobs, "jobs");
        return of(jobs.entrySet()
                        .stream()
                        .map(job -> new ClusterJob(job.getKey(), job.getValue()))
                        .toList());
    }

    /** Of jobs. Of two jobs of one name, and of two tasks of one index, the later one counts. */
    public static ClusterSpec of(List<ClusterJob> jobs) {
        Objects.requireNonNull(jobs, "jobs");
        ClusterJobs rows = new ClusterJobs();
        try {
            for (ClusterJob job : jobs) {
                rows.add(Texts.bytes(job.name(), "name"), Texts.all(job.addresses(), "addresses"),
                        job.taskIndices().isEmpty()
                                ? null
                                : job.taskIndices().stream().mapToInt(Integer::intValue).toArray(),
                        job.addresses().size());
            }
            return made(out -> DistModule.dist_cluster_spec_create(rows.get(), rows.size(), out));
        } finally {
            rows.delete();
        }
    }

    /** Of a JSON text, as "cluster" in TF_CONFIG has it: {"worker": ["a:1", "b:2"], "ps": {"3": "c:4"}}. */
    public static ClusterSpec fromJson(String text) {
        byte[] bytes = Texts.bytes(text, "text");
        return made(out -> DistModule.dist_cluster_spec_from_json(bytes, out));
    }

    /**
     * One of several. The tasks of a job that has indices 0, 1, ... in all of them follow one another; where
     * it has other indices in one of them its tasks keep theirs.
     */
    public static ClusterSpec union(List<ClusterSpec> specs) {
        try (Uses uses = new Uses()) {
            long[] handles = uses.all(specs, "specs");
            return made(out -> DistModule.dist_cluster_spec_union(handles, handles.length, out));
        }
    }

    @FunctionalInterface
    private interface Create {
        void with(long[] out);
    }

    private static ClusterSpec made(Create create) {
        long[] out = new long[1];
        create.with(out);
        return new ClusterSpec(out[0]);
    }

    // ---- What is in it ----

    /** The names of the jobs, in their order. */
    public List<String> jobs() {
        return ask(handle -> {
            List<String> jobs = new ArrayList<>();
            for (long i = 0; i < DistModule.dist_cluster_spec_num_jobs(handle); i++) {
                jobs.add(Texts.of(DistModule.dist_cluster_spec_job(handle, i)));
            }
            return jobs;
        });
    }

    @FunctionalInterface
    private interface OfJob {
        void ask(long spec, byte[] job, int[] out);
    }

    /** How many tasks a job has. */
    public int numTasks(String job) {
        byte[] name = Texts.bytes(job, "job");
        return number((handle, out) -> DistModule.dist_cluster_spec_num_tasks(handle, name, out));
    }

    /** The indices of a job's tasks, ascending. */
    public int[] taskIndices(String job) {
        byte[] name = Texts.bytes(job, "job");
        int[] indices = new int[numTasks(job)];
        return ask(handle -> {
            DistModule.dist_cluster_spec_task_indices(handle, name, indices, indices.length, new long[1]);
            return indices;
        });
    }

    /** The address of a task. */
    public String taskAddress(String job, int task) {
        byte[] name = Texts.bytes(job, "job");
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_cluster_spec_task_address(handle, name, task, out);
            return Texts.of(out[0]);
        });
    }

    /** As JSON: a job with tasks 0, 1, ... is a list of addresses, any other an object. */
    public String json() {
        return ask(handle -> Texts.of(DistModule.dist_cluster_spec_json(handle)));
    }

    // ---- The rules ----

    @FunctionalInterface
    private interface Number {
        void ask(long spec, int[] out);
    }

    private int number(Number question) {
        return askInt(handle -> {
            int[] out = new int[1];
            question.ask(handle, out);
            return out[0];
        });
    }

    @FunctionalInterface
    private interface Rule {
        void ask(long spec, byte[] taskType, int taskId, int[] out);
    }

    private int rule(String taskType, OptionalInt taskId, Rule rule) {
        byte[] type = Texts.orNull(taskType);
        int id = number(taskId);
        return number((handle, out) -> rule.ask(handle, type, id, out));
    }

    /** A task's number as C has it. */
    static int number(OptionalInt taskId) {
        return Objects.requireNonNull(taskId, "taskId").orElse(DistModuleConstants.DIST_TASK_UNSET);
    }

    static OptionalInt given(int taskId) {
        return taskId == DistModuleConstants.DIST_TASK_UNSET ? OptionalInt.empty() : OptionalInt.of(taskId);
    }

    /** Throws where the cluster has not the jobs that training has, or a task is none of it. */
    public void validate(String taskType, OptionalInt taskId) {
        rule(taskType, taskId, (handle, type, id, out) -> DistModule.dist_cluster_validate(handle, type, id));
    }

    /** Whether a task is the chief: the chief, an evaluator, and worker 0 where there is no chief. */
    public boolean isChief(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_is_chief) != 0;
    }

    /** Who leads the collectives, "/job:worker/replica:0/task:0"; "" where nobody does. */
    public String collectiveLeader(String taskType, OptionalInt taskId) {
        byte[] type = Texts.orNull(taskType);
        int id = number(taskId);
        return ask(handle -> {
            byte[] out = room();
            DistModule.dist_cluster_collective_leader(handle, type, id, out, out.length);
            return Texts.written(out);
        });
    }

    static byte[] room() {
        return new byte[DistModuleConstants.DIST_MAX_ADDRESS_BYTES];
    }

    /** Who leads the coordination of the cluster: ps 0, else the chief, else worker 0; "" without any job. */
    public String coordinationLeader() {
        return ask(handle -> {
            byte[] out = room();
            DistModule.dist_cluster_coordination_leader(handle, out, out.length);
            return Texts.written(out);
        });
    }

    /** With how many others, itself counted, a task of that type works. */
    public int workerCount(String taskType) {
        byte[] type = Texts.orNull(taskType);
        return number((handle, out) -> DistModule.dist_cluster_worker_count(handle, type, out));
    }

    /** The number of a task among those that it works with: the chief is 0 and workers follow. */
    public int idInCluster(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_id_in_cluster);
    }

    /** Whether a task writes checkpoints: the chief does, and in an empty cluster the one process. */
    public boolean shouldSaveCheckpoint(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_save_checkpoint) != 0;
    }

    /** Whether a task writes summaries. */
    public boolean shouldSaveSummary(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_save_summary) != 0;
    }

    /** Whether a task evaluates the model: an evaluator does, else who writes checkpoints. */
    public boolean shouldEvaluate(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_evaluate) != 0;
    }

    /** Whether both have the same jobs, in any order, with the same tasks. */
    public boolean isSame(ClusterSpec other) {
        try (Uses uses = new Uses()) {
            return DistModule.dist_cluster_spec_is_equal(uses.of(this), uses.of(other, "other")) != 0;
        }
    }

    /** {@link #json}; of a closed one that it is closed. */
    @Override
    public String toString() {
        return owner.isClosed() ? "a closed cluster spec" : json();
    }
}
