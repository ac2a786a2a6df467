// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Objects;
import org.libdist.internal.dist_dataset_options;

/**
 * Specifies how batches are made of a source's elements and how they are divided. Immutable: each method
 * returns a new set of options.
 */
public final class DatasetOptions {
    /**
     * The default options: the source's elements already are batches, nothing is shuffled, and one batch is
     * made ahead if that is faster.
     */
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
        copy.batchSizes = batchSizes;
        return copy;
    }

    /**
     * Sets the number of elements per batch for all replicas together; 0 means that the source's elements
     * already are global batches.
     */
    public DatasetOptions globalBatchSize(long elements) {
        DatasetOptions copy = copy();
        copy.globalBatchSize = elements;
        return copy;
    }

    /** Sets whether a last batch that is not full is omitted. */
    public DatasetOptions dropRemainder(boolean drop) {
        DatasetOptions copy = copy();
        copy.dropRemainder = drop;
        return copy;
    }

    /** Uses a different order in every pass, drawn from the seed and the number of the pass. */
    public DatasetOptions shuffle(long seed) {
        DatasetOptions copy = copy();
        copy.shuffle = true;
        copy.seed = seed;
        return copy;
    }

    /** Sets the seed without shuffling. */
    public DatasetOptions seed(long seed) {
        DatasetOptions copy = copy();
        copy.seed = seed;
        return copy;
    }

    /**
     * Sets the number of batches made ahead; 0 selects one if libdist measures that this is faster, and a
     * negative value means none.
     */
    public DatasetOptions prefetch(int batches) {
        DatasetOptions copy = copy();
        copy.prefetch = batches;
        return copy;
    }

    /** Sets how the source is divided among workers. */
    public DatasetOptions shardPolicy(ShardPolicy policy) {
        DatasetOptions copy = copy();
        copy.shardPolicy = Objects.requireNonNull(policy, "policy");
        return copy;
    }

    /**
     * Sets the number of workers that read this dataset together, and the index of this worker. The default
     * is the workers of the strategy.
     */
    public DatasetOptions workers(int numWorkers, int workerIndex) {
        DatasetOptions copy = copy();
        copy.numWorkers = numWorkers;
        copy.workerIndex = workerIndex;
        return copy;
    }

    /** Sets whether the global batch size counts the elements of one worker. */
    public DatasetOptions workerBatches(boolean workerBatches) {
        DatasetOptions copy = copy();
        copy.workerBatches = workerBatches;
        return copy;
    }

    /**
     * Sets whether every replica gets what it would get in one process with all replicas of all workers, so
     * that training produces the same bits however replicas are divided among workers. Every worker then
     * reads the whole source. Requires {@link ShardPolicy#AUTO} or {@link ShardPolicy#DATA}. Otherwise
     * workers take turns at the pieces of a batch, as in TensorFlow.
     */
    public DatasetOptions asOneProcess(boolean asOneProcess) {
        DatasetOptions copy = copy();
        copy.asOneProcess = asOneProcess;
        return copy;
    }

    /**
     * Sets whether the source must be sharded by element before batches are made. Requires {@link
     * ShardPolicy#HINT}.
     */
    public DatasetOptions shardHint(boolean hint) {
        DatasetOptions copy = copy();
        copy.shardHint = hint;
        return copy;
    }

    /** Sets the number of files that are read in turn, one element each. */
    public DatasetOptions interleave(int files) {
        DatasetOptions copy = copy();
        copy.interleave = files;
        return copy;
    }

    /** Sets whether every batch has the same shape. If it is not set, it follows from the other options. */
    public DatasetOptions staticShapes(boolean staticShapes) {
        DatasetOptions copy = copy();
        copy.staticShapes = staticShapes ? 1 : -1;
        return copy;
    }

    /**
     * Sets the number of pipelines that produce batches. PER_REPLICA is possible only for datasets from a
     * function.
     */
    public DatasetOptions replicationMode(InputMode mode) {
        DatasetOptions copy = copy();
        copy.replicationMode = Objects.requireNonNull(mode, "mode");
        return copy;
    }

    /**
     * Sets the sizes, in examples, of consecutive pieces, repeated cyclically: replica r gets piece k*R + r
     * in step k.
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
        if (batchSizes != null) {
            options.set_batch_sizes(batchSizes, batchSizes.length);
        }
        return options;
    }
}
