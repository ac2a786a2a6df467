// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;

/**
 * A source of batches, each split over the replicas.
 *
 * <pre>{@code
 * for (Value batch : dataset) {
 *     try (batch) {
 *         strategy.runValues(step, batch);
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

    /** Element i is row i of each of the tensors (features, labels, ...), which are copied. */
    public static Dataset fromTensors(Strategy strategy, List<Tensor> tensors, DatasetOptions options) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_dataset_create_from_tensors(uses.of(strategy, "strategy"), uses.tensors(tensors),
                    tensors.size(), options.toNative(uses), out);
            return new Dataset(strategy, out[0], null, tensors.stream().mapToLong(Tensor::sizeBytes).sum());
        }
    }

    /**
     * Elements that a function makes. What it throws comes out of the iterator's methods, itself, checked
     * exceptions too.
     */
    public static Dataset fromSource(Strategy strategy, Source source, DatasetOptions options) {
        Objects.requireNonNull(source, "source");
        Target target = new Target() {
            @Override
            long source(long index) throws Exception {
                return Value.handedOver(source.element(index));
            }
        };
        long[] out = new long[1];
        Calls.<RuntimeException>keep(target,
                (uses, token) -> DistModule.dist_dataset_create_from_callback(
                                uses.of(strategy, "strategy"), token, options.toNative(uses), out));
        return new Dataset(strategy, out[0], target, 0);
    }

    /** Elements of files, which a function reads; otherwise as {@link #fromSource}. */
    public static Dataset fromFiles(
            Strategy strategy, List<String> names, FileSource source, DatasetOptions options) {
        Objects.requireNonNull(source, "source");
        byte[][] files = Texts.all(names, "names");
        Target target = new Target() {
            @Override
            long fileSource(long file, String name, long index) throws Exception {
                return Value.handedOver(source.element(file, name, index));
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
     * What a function makes: called once, here, and its batches are dealt out; with InputMode.PER_REPLICA
     * once for each replica.
     *
     * @throws X what the function threw
     */
    public static <X extends Exception> Dataset fromFunction(
            Strategy strategy, DatasetFunction<X> fn, DatasetOptions options) throws X {
        Objects.requireNonNull(fn, "fn");
        AtomicReference<Target> source = new AtomicReference<>();
        Target target = new Target() {
            @Override
            long dataset(int numPipelines, int pipeline, int numReplicas) throws X {
                Dataset made = fn.make(new InputContext(numPipelines, pipeline, numReplicas));
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

    /** The handle, which is native code's from now on. */
    private long handOver() {
        return owner.handOver();
    }

    /** What batches are like: their structure, with a text "f32[?, 4]" for each tensor of each replica. */
    public Value elementSpec() {
        return asking((handle, out) -> DistModule.dist_dataset_element_spec(handle, out));
    }

    @FunctionalInterface
    private interface Asking {
        void with(long handle, long[] out);
    }

    /** A call that may ask the source. */
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
     * Makes one value of a whole pass: state = fn(state, batch) for each batch.
     *
     * @param initial may be null, and then the result too
     * @throws X what the function threw
     */
    public <X extends Exception> Value reduce(Value initial, BatchReducer<X> fn) throws X {
        Objects.requireNonNull(fn, "fn");
        Target reducer = new Target() {
            @Override
            long datasetReduce(long state, long batch) throws X {
                try (Value before = Value.borrowed(state); Value next = Value.borrowed(batch)) {
                    return Value.handedOver(fn.reduce(before, next));
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
     * Reads what each worker would read in one pass, and checks that every example comes exactly once.
     *
     * @param limit of elements that a source of yours is asked for; 0: none
     * @throws DistException DATA_LOSS an example that no worker gets, or several
     */
    public void checkShards(long limit) {
        asking((handle, out) -> DistModule.dist_dataset_check_shards(handle, limit));
    }

    /** Begins a pass. */
    @Override
    public BatchIterator iterator() {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_iterator_create(handle, out);
            return new BatchIterator(workers, out[0], target);
        });
    }

    /** Begins a pass in its middle. */
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
     * Who reads what: its source, how batches are made of it, what each replica gets, and what is lost at
     * the end.
     */
    public String explain() {
        return written(Text::explain_dataset);
    }
}
