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
 * What Slurm says of a step. What is not given is read of the environment. Immutable: each method gives
 * another set of options, and a null text is one that is not given.
 */
public final class SlurmOptions {
    /** Nothing is given. */
    public static final SlurmOptions NONE = new SlurmOptions();

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

    /** Of this process in the step. */
    public SlurmOptions rank(int rank) {
        SlurmOptions copy = copy();
        copy.rank = OptionalInt.of(rank);
        return copy;
    }

    /** Of the step; 0: as the environment says, where no jobs are given. */
    public SlurmOptions numTasks(int numTasks) {
        SlurmOptions copy = copy();
        copy.numTasks = numTasks;
        return copy;
    }

    /** As Slurm writes it: "n[01-03,7],m1". */
    public SlurmOptions hostList(String hostList) {
        SlurmOptions copy = copy();
        copy.hostList = hostList;
        return copy;
    }

    /** As Slurm writes it, by the order of hosts: "2(x3),1". */
    public SlurmOptions tasksPerNode(String tasksPerNode) {
        SlurmOptions copy = copy();
        copy.tasksPerNode = tasksPerNode;
        return copy;
    }

    /** 0: as tasksPerNode says. */
    public SlurmOptions tasksOnEachHost(int tasksOnEachHost) {
        SlurmOptions copy = copy();
        copy.tasksOnEachHost = tasksOnEachHost;
        return copy;
    }

    /** The port of the first task of a host; 0: 8888. */
    public SlurmOptions portBase(int portBase) {
        SlurmOptions copy = copy();
        copy.portBase = portBase;
        return copy;
    }

    /** 0: none, and they are not shared out. */
    public SlurmOptions gpusPerHost(int gpusPerHost) {
        SlurmOptions copy = copy();
        copy.gpusPerHost = gpusPerHost;
        return copy;
    }

    /** 0: as many as all tasks of a host can have. */
    public SlurmOptions gpusPerTask(int gpusPerTask) {
        SlurmOptions copy = copy();
        copy.gpusPerTask = gpusPerTask;
        return copy;
    }

    /** How many tasks each job has; without it there is one job, "worker", of all tasks. */
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
