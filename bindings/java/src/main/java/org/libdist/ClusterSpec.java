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
 * Describes the processes of a cluster: named jobs, each with the addresses of its tasks. Immutable; no
 * method connects to an address. A task is identified by its type, which is the name of its job, and its id,
 * which is its index in the job. Either can be missing: null or empty.
 *
 * <pre>{@code
 * ClusterSpec spec = ClusterSpec.create(Map.of("worker", List.of("a:1", "b:2")));
 * spec.shouldSaveCheckpoint("worker", OptionalInt.of(0));
 * }</pre>
 */
public final class ClusterSpec extends NativeObject {
    ClusterSpec(long handle) {
        super(new Native("cluster spec", handle, DistModule::dist_cluster_spec_destroy));
    }

    /** Creates a spec of jobs, in the order of the map. Each job has the addresses of its tasks 0, 1, ... */
    public static ClusterSpec create(Map<String, List<String>> jobs) {
        Objects.requireNonNull(jobs, "jobs");
        return create(jobs.entrySet()
                        .stream()
                        .map(job -> new ClusterJob(job.getKey(), job.getValue()))
                        .toList());
    }

    /**
     * Creates a spec of jobs. If two jobs have the same name, or two tasks of a job the same index, the later
     * one replaces the earlier one.
     */
    public static ClusterSpec create(List<ClusterJob> jobs) {
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

    /**
     * Creates a spec from JSON in the format of "cluster" in TF_CONFIG: {"worker": ["a:1", "b:2"], "ps":
     * {"3": "c:4"}}.
     */
    public static ClusterSpec fromJson(String text) {
        byte[] bytes = Texts.bytes(text, "text");
        return made(out -> DistModule.dist_cluster_spec_from_json(bytes, out));
    }

    /**
     * Merges several specs into one. If a job has the indices 0, 1, ... in all of them, its tasks are
     * appended in order. Otherwise all tasks of the job keep their indices.
     */
    public static ClusterSpec fromSpecs(List<ClusterSpec> specs) {
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

    /** Returns the names of the jobs, in their order. */
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

    /** Returns the number of tasks of a job. */
    public int numTasks(String job) {
        byte[] name = Texts.bytes(job, "job");
        return number((handle, out) -> DistModule.dist_cluster_spec_num_tasks(handle, name, out));
    }

    /** Returns the indices of a job's tasks, in ascending order. */
    public int[] taskIndices(String job) {
        byte[] name = Texts.bytes(job, "job");
        int[] indices = new int[numTasks(job)];
        return ask(handle -> {
            DistModule.dist_cluster_spec_task_indices(handle, name, indices, indices.length, new long[1]);
            return indices;
        });
    }

    /** Returns the address of a task. */
    public String taskAddress(String job, int task) {
        byte[] name = Texts.bytes(job, "job");
        return ask(handle -> {
            byte[][] out = new byte[1][];
            DistModule.dist_cluster_spec_task_address(handle, name, task, out);
            return Texts.of(out[0]);
        });
    }

    /**
     * Returns the spec as JSON: a job with the tasks 0, 1, ... is a list of addresses, any other job is an
     * object.
     */
    public String toJson() {
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

    /** Returns a task's number for native code. */
    static int number(OptionalInt taskId) {
        return Objects.requireNonNull(taskId, "taskId").orElse(DistModuleConstants.DIST_TASK_UNSET);
    }

    static OptionalInt given(int taskId) {
        return taskId == DistModuleConstants.DIST_TASK_UNSET ? OptionalInt.empty() : OptionalInt.of(taskId);
    }

    /**
     * Throws if the cluster is not suitable for training or the task does not belong to it. The checks are
     * those of TensorFlow.
     */
    public void validate(String taskType, OptionalInt taskId) {
        rule(taskType, taskId, (handle, type, id, out) -> DistModule.dist_cluster_validate(handle, type, id));
    }

    /**
     * Returns whether a task is the chief. This is true for the task of job "chief", for an evaluator, and
     * for worker 0 if the cluster has no chief.
     */
    public boolean isChief(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_is_chief) != 0;
    }

    /**
     * Returns the task that leads the collectives, "/job:worker/replica:0/task:0": the chief, or worker 0 if
     * there is no chief. Returns "" for an evaluator and for an empty cluster.
     */
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

    /**
     * Returns the task that leads the coordination of the cluster: ps 0, or else the chief, or else worker 0.
     * Returns "" for an empty cluster.
     */
    public String coordinationLeader() {
        return ask(handle -> {
            byte[] out = room();
            DistModule.dist_cluster_coordination_leader(handle, out, out.length);
            return Texts.written(out);
        });
    }

    /** Returns the number of tasks that work together with a task of the given type, including itself. */
    public int numWorkers(String taskType) {
        byte[] type = Texts.orNull(taskType);
        return number((handle, out) -> DistModule.dist_cluster_worker_count(handle, type, out));
    }

    /**
     * Returns the number of a task among the tasks that it works with: the chief is 0, and the workers
     * follow.
     */
    public int idInCluster(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_id_in_cluster);
    }

    /**
     * Returns whether a task writes checkpoints: the chief does, and so does the single process of an empty
     * cluster.
     */
    public boolean shouldSaveCheckpoint(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_save_checkpoint) != 0;
    }

    /** Returns whether a task writes summaries; the result is that of {@link #shouldSaveCheckpoint}. */
    public boolean shouldSaveSummary(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_save_summary) != 0;
    }

    /**
     * Returns whether a task evaluates the model: an evaluator does; if the cluster has no evaluator, the
     * task that writes checkpoints does.
     */
    public boolean shouldEvaluate(String taskType, OptionalInt taskId) {
        return rule(taskType, taskId, DistModule::dist_cluster_should_evaluate) != 0;
    }

    /** Returns whether both specs have the same jobs, in any order, with the same tasks. */
    public boolean isSame(ClusterSpec other) {
        try (Uses uses = new Uses()) {
            return DistModule.dist_cluster_spec_is_equal(uses.of(this), uses.of(other, "other")) != 0;
        }
    }

    /** Returns the same text as {@link #toJson}; for a closed spec, a text that states this. */
    @Override
    public String toString() {
        return owner.isClosed() ? "a closed cluster spec" : toJson();
    }
}
