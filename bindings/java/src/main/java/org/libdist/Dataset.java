// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;

/**
 * Produces batches, each of which is split over the replicas.
 *
 * <pre>{@code
 * for (Value batch : dataset) {
 *     try (batch) {
 *         strategy.run(step, batch);
 *     }
 * }
 * }</pre>
 */
public final class Dataset extends NativeObject implements Iterable<Value> {
    private final Target target; // the source's or function's; null: none
    private final Strategy workers; // the strategy where steps wait for its other workers; null: they do not

    private Dataset(Strategy strategy, long handle, Target target, long sizeBytes) {
        super(new Native("dataset", handle, DistModule::dist_dataset_destroy, sizeBytes));
        this.target = target;
        workers = strategy.hasPeers() ? strategy : null;
    }

    /**
     * Creates a dataset of rows: element i is row i of each tensor (features, labels, ...). The data are
     * copied.
     */
    public static Dataset fromTensors(Strategy strategy, List<Tensor> tensors, DatasetOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_dataset_create_from_tensors(uses.of(strategy, "strategy"), uses.tensors(tensors),
                    tensors.size(), options.toNative(uses), out);
            return new Dataset(strategy, out[0], null, tensors.stream().mapToLong(Tensor::sizeBytes).sum());
        }
    }

    /**
     * Creates a dataset whose elements a function produces. Exceptions that it throws, including checked
     * ones, are rethrown unchanged by the iterator's methods.
     */
    public static Dataset fromSource(Strategy strategy, SourceFunction source, DatasetOptions options) {
        Objects.requireNonNull(source, "source");
        Target target = new Target() {
            @Override
            long source(long index) throws Exception {
                return Value.handedOver(source.call(index));
            }
        };
        long[] out = new long[1];
        Calls.<RuntimeException>keep(target,
                (uses, token) -> DistModule.dist_dataset_create_from_callback(
                                uses.of(strategy, "strategy"), token, options.toNative(uses), out));
        return new Dataset(strategy, out[0], target, 0);
    }

    /**
     * Creates a dataset of the elements of files, which a function reads. Otherwise it is like {@link
     * #fromSource}.
     */
    public static Dataset fromFiles(
            Strategy strategy, List<String> names, FileSourceFunction source, DatasetOptions options) {
        Objects.requireNonNull(source, "source");
        byte[][] files = Texts.all(names, "names");
        Target target = new Target() {
            @Override
            long fileSource(long file, String name, long index) throws Exception {
                return Value.handedOver(source.call(file, name, index));
            }
        };
        long[] out = new long[1];
        Calls.<RuntimeException>keep(target,
                (uses, token)
                        -> DistModule.dist_dataset_create_from_files(uses.of(strategy, "strategy"), files,
                                files.length, token, options.toNative(uses), out));
        return new Dataset(strategy, out[0], target, 0);
    }

    /**
     * Creates a dataset from the datasets that a function returns. Each of their batches goes to one replica
     * as a whole. The function is called once, during this call, or once for each replica with {@link
     * InputMode#PER_REPLICA}.
     *
     * @throws X the exception that the function threw
     */
    public static <X extends Exception> Dataset fromFunction(
            Strategy strategy, DatasetFunction<X> fn, DatasetOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        AtomicReference<Target> source = new AtomicReference<>();
        Target target = new Target() {
            @Override
            long dataset(int numPipelines, int pipeline, int numReplicas) throws X {
                Dataset made = fn.call(new InputContext(numPipelines, pipeline, numReplicas));
                if (made == null) {
                    return 0;
                }
                source.compareAndSet(null, made.target);
                return made.handOver();
            }
        };
        long[] out = new long[1];
        Calls.<X>run(target,
                (uses, token) -> DistModule.dist_dataset_create_from_function(
                                uses.of(strategy, "strategy"), token, options.toNative(uses), out));
        return new Dataset(strategy, out[0], source.get(), 0);
    }

    /** Returns the handle and transfers its ownership to native code. */
    private long handOver() {
        return owner.handOver();
    }

    /** Describes the batches: their structure, with a text "f32[?, 4]" for each tensor of each replica. */
    public Value elementSpec() {
        return asking((handle, out) -> DistModule.dist_dataset_element_spec(handle, out));
    }

    @FunctionalInterface
    private interface Asking {
        void with(long handle, long[] out);
    }

    /** Makes a call that may call the source. */
    private Value asking(Asking call) {
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            call.with(uses.of(this), out);
        } catch (DistException report) {
            throw cause(target, report);
        }
        return Value.taken(out[0]);
    }

    static RuntimeException cause(Target target, DistException report) {
        return target == null ? report : Target.<RuntimeException>rethrow(target.cause(report));
    }

    /**
     * Reduces a whole pass to one value: state = fn(state, batch) for each batch.
     *
     * @param initial may be null; the result can then be null, too
     * @throws X the exception that the function threw
     */
    public <X extends Exception> Value reduce(Value initial, BatchReduceFunction<X> fn) throws X {
        Objects.requireNonNull(fn, "fn");
        Target reducer = new Target() {
            @Override
            long datasetReduce(long state, long batch) throws X {
                try (Value before = Value.borrowed(state); Value next = Value.borrowed(batch)) {
                    return Value.handedOver(fn.call(before, next));
                }
            }
        };
        return Calls.<X>valueOf(reducer, (uses, token, out) -> {
            try {
                uses.waitingForPeersOf(workers);
                DistModule.dist_dataset_reduce(uses.of(this), uses.ofNullable(initial), token, out);
            } catch (DistException report) {
                if (target != null) {
                    target.rethrowOwn(report);
                }
                throw report;
            }
        });
    }

    /**
     * Reads what each worker would read in one pass, and checks that every example occurs exactly once.
     *
     * @param limit maximum number of elements that your source is asked for; 0 means no limit
     * @throws DistException DATA_LOSS a worker misses an example, or an example occurs several times
     */
    public void checkShards(long limit) {
        asking((handle, out) -> DistModule.dist_dataset_check_shards(handle, limit));
    }

    /** Starts a pass. */
    @Override
    public BatchIterator iterator() {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_iterator_create(handle, out);
            return new BatchIterator(workers, out[0], target);
        });
    }

    /** Starts a pass at a position. */
    public BatchIterator iterator(Position position) {
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            DistModule.dist_iterator_create_at(uses.of(this), position.toNative(uses), out);
        } catch (DistException report) {
            throw cause(target, report);
        }
        return new BatchIterator(workers, out[0], target);
    }

    /**
     * Returns a description of how the dataset is read: its source, how batches are made, what each replica
     * gets, and what is lost at the end.
     */
    public String explain() {
        return written(Text::explain_dataset);
    }
}
