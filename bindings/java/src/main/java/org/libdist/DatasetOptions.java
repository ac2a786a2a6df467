// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_dataset_options;

/**
 * How batches are made of a source, and who gets what of it. Immutable: each method gives another set of
 * options.
 */
public final class DatasetOptions {
    /** The source's elements are batches already; nothing is shuffled; one batch is made ahead where that is faster. */
    public static final DatasetOptions DEFAULT = new DatasetOptions();

    private boolean dropRemainder;
    private long globalBatchSize;
    private boolean shuffle;
    private int prefetch;
    private long seed;
    private ShardPolicy shardPolicy = ShardPolicy.AUTO;
    private int numWorkers;
    private int workerIndex;
    private boolean workerBatches;
    private boolean asOneProcess;
    private boolean shardHint;
    private int interleave;
    private int staticShapes;
    private InputMode replicationMode = InputMode.PER_WORKER;
    private int fetchToDevice;
    private boolean placeDatasetOnDevice;
    private long[] batchSizes; // null: batches are cut evenly

    private DatasetOptions() {}

    private DatasetOptions copy() {
        DatasetOptions copy = new DatasetOptions();
        copy.dropRemainder = dropRemainder;
        copy.globalBatchSize = globalBatchSize;
        copy.shuffle = shuffle;
        copy.prefetch = prefetch;
        copy.seed = seed;
        copy.shardPolicy = shardPolicy;
        copy.numWorkers = numWorkers;
        copy.workerIndex = workerIndex;
        copy.workerBatches = workerBatches;
        copy.asOneProcess = asOneProcess;
        copy.shardHint = shardHint;
        copy.interleave = interleave;
        copy.staticShapes = staticShapes;
        copy.replicationMode = replicationMode;
        copy.fetchToDevice = fetchToDevice;
        copy.placeDatasetOnDevice = placeDatasetOnDevice;
        copy.batchSizes = batchSizes;
        return copy;
    }

    /** Elements of a batch for all replicas together; 0: the source's elements are global batches already. */
    public DatasetOptions globalBatchSize(long elements) {
        DatasetOptions copy = copy();
        copy.globalBatchSize = elements;
        return copy;
    }

    /** Whether a last batch that is not full is left out. */
    public DatasetOptions dropRemainder(boolean drop) {
        DatasetOptions copy = copy();
        copy.dropRemainder = drop;
        return copy;
    }

    /** Another order in every pass, drawn from the seed and the pass's number. */
    public DatasetOptions shuffle(long seed) {
        DatasetOptions copy = copy();
        copy.shuffle = true;
        copy.seed = seed;
        return copy;
    }

    /** The seed alone, without shuffling. */
    public DatasetOptions seed(long seed) {
        DatasetOptions copy = copy();
        copy.seed = seed;
        return copy;
    }

    /** Batches made ahead; 0: one where that is faster, as measured; negative: none. */
    public DatasetOptions prefetch(int batches) {
        DatasetOptions copy = copy();
        copy.prefetch = batches;
        return copy;
    }

    /** What of the source goes to which worker. */
    public DatasetOptions shardPolicy(ShardPolicy policy) {
        DatasetOptions copy = copy();
        copy.shardPolicy = Objects.requireNonNull(policy, "policy");
        return copy;
    }

    /**
     * Several workers read this dataset together; which of them this one is. Without it they are those of the
     * strategy.
     */
    public DatasetOptions workers(int numWorkers, int workerIndex) {
        DatasetOptions copy = copy();
        copy.numWorkers = numWorkers;
        copy.workerIndex = workerIndex;
        return copy;
    }

    /** Whether the global batch size counts what one worker gets of a batch. */
    public DatasetOptions workerBatches(boolean workerBatches) {
        DatasetOptions copy = copy();
        copy.workerBatches = workerBatches;
        return copy;
    }

    /**
     * Whether replica r of all workers gets what replica r of one process with all of them would, so that
     * training has the same bits however replicas are divided among workers; else workers take turns at the
     * pieces, as TensorFlow's do. Every worker reads everything. Only with ShardPolicy.AUTO and DATA.
     */
    public DatasetOptions asOneProcess(boolean asOneProcess) {
        DatasetOptions copy = copy();
        copy.asOneProcess = asOneProcess;
        return copy;
    }

    /** Whether the source wants to be sharded before batches are made: only ShardPolicy.HINT does so. */
    public DatasetOptions shardHint(boolean hint) {
        DatasetOptions copy = copy();
        copy.shardHint = hint;
        return copy;
    }

    /** Files that are read in turn, an element each. */
    public DatasetOptions interleave(int files) {
        DatasetOptions copy = copy();
        copy.interleave = files;
        return copy;
    }

    /** Whether every batch has the same shape; not given, it follows from the rest. */
    public DatasetOptions staticShapes(boolean staticShapes) {
        DatasetOptions copy = copy();
        copy.staticShapes = staticShapes ? 1 : -1;
        return copy;
    }

    /** How many pipelines make the batches; PER_REPLICA only of a function. */
    public DatasetOptions replicationMode(InputMode mode) {
        DatasetOptions copy = copy();
        copy.replicationMode = Objects.requireNonNull(mode, "mode");
        return copy;
    }

    /** TensorFlow's; batches lie in the memory that replicas read anyway. */
    public DatasetOptions fetchToDevice(boolean fetch) {
        DatasetOptions copy = copy();
        copy.fetchToDevice = fetch ? 1 : -1;
        return copy;
    }

    /** TensorFlow's; no effect. */
    public DatasetOptions placeDatasetOnDevice(boolean place) {
        DatasetOptions copy = copy();
        copy.placeDatasetOnDevice = place;
        return copy;
    }

    /**
     * Examples of the 1st, 2nd, ... piece, again from the first after the last: replica r of step k gets k*R
     * + r.
     */
    public DatasetOptions batchSizes(long... sizes) {
        DatasetOptions copy = copy();
        copy.batchSizes = sizes.clone();
        return copy;
    }

    dist_dataset_options toNative(Uses uses) {
        dist_dataset_options options = new dist_dataset_options();
        uses.defer(options::delete);
        options.setDrop_remainder(dropRemainder ? 1 : 0);
        options.setGlobal_batch_size(globalBatchSize);
        options.setShuffle(shuffle ? 1 : 0);
        options.setPrefetch(prefetch);
        options.setSeed(seed);
        options.setShard_policy(shardPolicy.code);
        options.setNum_workers(numWorkers);
        options.setWorker_index(workerIndex);
        options.setWorker_batches(workerBatches ? 1 : 0);
        options.setAs_one_process(asOneProcess ? 1 : 0);
        options.setShard_hint(shardHint ? 1 : 0);
        options.setInterleave(interleave);
        options.setStatic_shapes(staticShapes);
        options.setReplication_mode(replicationMode.code);
        options.setFetch_to_device(fetchToDevice);
        options.setPlace_dataset_on_device(placeDatasetOnDevice ? 1 : 0);
        if (batchSizes != null) {
            options.set_batch_sizes(batchSizes, batchSizes.length);
        }
        return options;
    }
}
