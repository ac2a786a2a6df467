// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import org.libdist.internal.ClusterJobs;
import org.libdist.internal.dist_slurm_options;

/**
 * A Slurm step. Values that are not set are read from the environment. Immutable: each method returns a new
 * set of options. A null text is not set.
 */
public final class SlurmOptions {
    /** Options in which nothing is set. */
    public static final SlurmOptions DEFAULT = new SlurmOptions();

    private OptionalInt rank = OptionalInt.empty();
    private int numTasks;
    private String hostList;
    private String tasksPerNode;
    private int tasksOnEachHost;
    private int portBase;
    private int gpusPerHost;
    private int gpusPerTask;
    private Map<String, Integer> jobs;

    private SlurmOptions() {}

    private SlurmOptions copy() {
        SlurmOptions copy = new SlurmOptions();
        copy.rank = rank;
        copy.numTasks = numTasks;
        copy.hostList = hostList;
        copy.tasksPerNode = tasksPerNode;
        copy.tasksOnEachHost = tasksOnEachHost;
        copy.portBase = portBase;
        copy.gpusPerHost = gpusPerHost;
        copy.gpusPerTask = gpusPerTask;
        copy.jobs = jobs;
        return copy;
    }

    /** Sets the rank of this process in the step. */
    public SlurmOptions rank(int rank) {
        SlurmOptions copy = copy();
        copy.rank = OptionalInt.of(rank);
        return copy;
    }

    /** Sets the number of tasks of the step; 0 selects that of the environment, if no jobs are given. */
    public SlurmOptions numTasks(int numTasks) {
        SlurmOptions copy = copy();
        copy.numTasks = numTasks;
        return copy;
    }

    /** Sets the hosts, in Slurm's format: "n[01-03,7],m1". */
    public SlurmOptions hostList(String hostList) {
        SlurmOptions copy = copy();
        copy.hostList = hostList;
        return copy;
    }

    /** Sets the number of tasks of each host, in Slurm's format and in the order of hosts: "2(x3),1". */
    public SlurmOptions tasksPerNode(String tasksPerNode) {
        SlurmOptions copy = copy();
        copy.tasksPerNode = tasksPerNode;
        return copy;
    }

    /** Sets the number of tasks of every host; 0 means that of {@link #tasksPerNode}. */
    public SlurmOptions tasksOnEachHost(int tasksOnEachHost) {
        SlurmOptions copy = copy();
        copy.tasksOnEachHost = tasksOnEachHost;
        return copy;
    }

    /** Sets the port of the first task of a host; 0 selects the default (8888). */
    public SlurmOptions portBase(int portBase) {
        SlurmOptions copy = copy();
        copy.portBase = portBase;
        return copy;
    }

    /** Sets the number of GPUs of each host; 0 means none, and GPUs are then not distributed. */
    public SlurmOptions gpusPerHost(int gpusPerHost) {
        SlurmOptions copy = copy();
        copy.gpusPerHost = gpusPerHost;
        return copy;
    }

    /** Sets the number of GPUs of each task; 0 means as many as every task of a host can have. */
    public SlurmOptions gpusPerTask(int gpusPerTask) {
        SlurmOptions copy = copy();
        copy.gpusPerTask = gpusPerTask;
        return copy;
    }

    /** Sets how many tasks each job has. Without it, there is one job, "worker", with all tasks. */
    public SlurmOptions jobs(Map<String, Integer> jobs) {
        SlurmOptions copy = copy();
        Map<String, Integer> kept = new LinkedHashMap<>();
        Objects.requireNonNull(jobs, "jobs")
                .forEach((name, tasks)
                                 -> kept.put(Objects.requireNonNull(name, "a job's name in jobs"),
                                         Objects.requireNonNull(tasks, "a job's number of tasks in jobs")));
        copy.jobs = Collections.unmodifiableMap(kept);
        return copy;
    }

    dist_slurm_options toNative(Uses uses) {
        dist_slurm_options options = new dist_slurm_options();
        uses.defer(options::delete);
        if (rank.isPresent()) {
            options.setHas_rank(1);
            options.setRank(rank.getAsInt());
        }
        options.setNum_tasks(numTasks);
        options.setHost_list(Texts.orNull(hostList));
        options.setTasks_per_node(Texts.orNull(tasksPerNode));
        options.setTasks_on_each_host(tasksOnEachHost);
        options.setPort_base(portBase);
        options.setGpus_per_host(gpusPerHost);
        options.setGpus_per_task(gpusPerTask);
        if (jobs != null) {
            ClusterJobs rows = new ClusterJobs();
            uses.defer(rows::delete);
            jobs.forEach((name, tasks) -> rows.add(Texts.bytes(name), null, null, tasks));
            options.set_jobs(rows);
        }
        return options;
    }
}
