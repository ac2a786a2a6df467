// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import org.libdist.internal.DistModule;
import org.libdist.internal.Text;
import org.libdist.internal.dist_partition;

/**
 * A tensor, a list, tuple or dictionary of values, one value for each replica, or another kind of data that
 * runs pass through. Immutable.
 *
 * <p>Its memory is freed when it is closed and nothing else holds it: by {@link #close}, with its {@link
 * ValueScope}, or at the latest by the garbage collector, which is invoked when much memory is held. An item
 * belongs to the value from which it was taken and is closed with it; {@link #retain} returns one that is
 * not. Values may outlive their strategy.
 */
public final class Value extends NativeObject {
    private static final long OVERHEAD_BYTES = 256; // of the smallest value

    private final long handle;
    private final Value parent; // the value that contains this item; null = none
    private ValueScope scope; // that closes it; null: none

    private Value(long handle, long sizeBytes) {
        super(new Native("value", handle, DistModule::dist_value_release, sizeBytes));
        this.handle = handle;
        parent = null;
    }

    private Value(long handle, Value parent) {
        super(parent);
        this.handle = handle;
        this.parent = parent;
    }

    /** Takes ownership of a reference; 0 is null. */
    static Value taken(long handle) {
        if (handle == 0) {
            return null;
        }
        Value value = new Value(handle, OVERHEAD_BYTES + DistModule.value_bytes(handle));
        ValueScope.enter(value);
        return value;
    }

    /**
     * Returns a new reference to a value that a function receives, for the duration of that function; 0 is
     * null.
     */
    static Value borrowed(long handle) {
        return handle == 0 ? null : new Value(DistModule.dist_value_retain(handle), 0);
    }

    /** Moves the value to {@code scope}, which closes it from now on; null means no scope. */
    void moveTo(ValueScope scope) {
        if (this.scope != null) {
            this.scope.forget(this);
        }
        this.scope = scope;
    }

    @Override
    public void close() {
        super.close();
        if (parent == null) {
            moveTo(null);
        }
    }

    /** Returns a new reference that native code will own; 0 for null. */
    static long handedOver(Value value) {
        return value == null ? 0 : value.ask(DistModule::dist_value_retain);
    }

    @Override
    long acquire() {
        super.acquire();
        return handle;
    }

    /** Creates a value from a row-major copy of a tensor. */
    public static Value createTensor(Strategy strategy, Tensor tensor) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_value_create_tensor(
                    uses.of(strategy, "strategy"), uses.tensor(tensor, "tensor"), out);
            return taken(out[0]);
        }
    }

    /** Creates a value that uses the tensor's own memory, which must not change while the value exists. */
    public static Value wrapTensor(Strategy strategy, Tensor tensor) {
        Objects.requireNonNull(tensor, "tensor");
        return keeping(tensor,
                (uses, token, out) -> DistModule.dist_value_wrap_tensor(
                                uses.of(strategy, "strategy"), uses.tensor(tensor, "tensor"), token, out));
    }

    /**
     * Creates a value that holds any object of the program, for data of a kind that libdist does not have. It
     * is passed through runs and merging.
     */
    public static Value wrapObject(Strategy strategy, Object object) {
        Objects.requireNonNull(object, "object");
        return keeping(object,
                (uses, token,
                        out) -> DistModule.dist_value_wrap_object(uses.of(strategy, "strategy"), token, out));
    }

    @FunctionalInterface
    private interface Wrap {
        void call(Uses uses, long token, long[] out);
    }

    private static Value keeping(Object object, Wrap wrap) {
        long token = Upcalls.register(new Kept(object));
        boolean made = false;
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            wrap.call(uses, token, out);
            made = true;
            return taken(out[0]);
        } finally {
            if (!made) {
                Upcalls.unregister(token);
            }
        }
    }

    /** An object that native code refers to by a token, until it releases it. */
    private static final class Kept extends Target {
        private final Object object;

        Kept(Object object) {
            this.object = object;
        }
    }

    /**
     * Returns the positional arguments of a function. A value that is not a list or tuple is the only one.
     */
    static long arguments(Uses uses, CrossReplica strategy, Value args) {
        if (args == null) {
            return 0;
        }
        long handle = uses.of(args);
        int kind = DistModule.dist_value_kind_of(handle);
        if (kind == ValueKind.LIST.code || kind == ValueKind.TUPLE.code) {
            return handle;
        }
        long[] tuple = new long[1];
        strategy.ask(owner -> { // not in use for longer: the call may be one that a shutdown is to end
            DistModule.dist_value_create_tuple(owner, new long[] {handle}, 1, tuple);
            return null;
        });
        uses.defer(() -> DistModule.dist_value_release(tuple[0]));
        return tuple[0];
    }

    /** Returns the arguments that a value holds: the inverse of {@link #arguments}. */
    static List<Value> positional(Value args) {
        if (args == null) {
            return List.of();
        }
        switch (args.kind()) {
            case NONE:
                return List.of();
            case LIST:
            case TUPLE:
                return args.items();
            default:
                return List.of(args);
        }
    }

    @FunctionalInterface
    private interface Create {
        void call(long strategy, long[] items, long n, long[] out);
    }

    private static Value of(Strategy strategy, List<Value> items, Create create) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            create.call(uses.of(strategy, "strategy"), uses.all(items, "items"), items.size(), out);
            return taken(out[0]);
        }
    }

    /**
     * Creates a value with R components, items.get(r) for replica r. Each replica that receives the value
     * finds only its own component.
     */
    public static Value createPerReplica(Strategy strategy, List<Value> items) {
        return of(strategy, items, DistModule::dist_value_create_per_replica);
    }

    /**
     * Creates a value with R components that the caller knows to be equal. Otherwise like {@link
     * #createPerReplica}.
     */
    public static Value createMirrored(Strategy strategy, List<Value> items) {
        return of(strategy, items, DistModule::dist_value_create_mirrored);
    }

    /** Creates a list of values. */
    public static Value createList(Strategy strategy, List<Value> items) {
        return of(strategy, items, DistModule::dist_value_create_list);
    }

    /**
     * Creates a tuple of values. A tuple is like a list, but the two are different structures: replicas that
     * return one of each disagree.
     */
    public static Value createTuple(Strategy strategy, List<Value> items) {
        return of(strategy, items, DistModule::dist_value_create_tuple);
    }

    /** Same as {@link #createTuple(Strategy, List)}. */
    public static Value createTuple(Strategy strategy, Value... items) {
        return createTuple(strategy, Arrays.asList(Objects.requireNonNull(items, "items")));
    }

    /** Creates a dictionary. Its items are sorted by the bytes of their keys. */
    public static Value createDict(Strategy strategy, Map<String, Value> entries) {
        byte[][] keys = entries.keySet().stream().map(Texts::bytes).toArray(byte[][] ::new);
        return of(strategy, List.copyOf(entries.values()),
                (s, items, n, out) -> DistModule.dist_value_create_dict(s, keys, items, n, out));
    }

    /** Creates a value of kind NONE. If all replicas return NONE, the merged result is NONE too. */
    public static Value createNone(Strategy strategy) {
        return of(strategy, List.of(), (s, items, n, out) -> DistModule.dist_value_create_none(s, out));
    }

    /** Creates a text value, which is passed through runs and merged, but never computed with. */
    public static Value createText(Strategy strategy, String text) {
        byte[] bytes = Texts.bytes(text, "text");
        return of(
                strategy, List.of(), (s, items, n, out) -> DistModule.dist_value_create_text(s, bytes, out));
    }

    /**
     * Creates one value that consists of several tensors: INDEXED_SLICES (values, indices, and a dense shape
     * or a NONE value), RAGGED (values, and row splits with the outermost first) or SPARSE (indices, values,
     * dense shape).
     */
    public static Value createComposite(Strategy strategy, ValueKind kind, List<Value> parts) {
        return of(strategy, Objects.requireNonNull(parts, "parts"),
                (s, items, n, out) -> DistModule.dist_value_create_composite(s, kind.code, items, n, out));
    }

    /** Creates a value that refers to a variable, to pass it to a run. It keeps the variable's memory. */
    public static Value createVariable(Variable variable) {
        return variable.ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_value_create_variable(handle, out);
            return taken(out[0]);
        });
    }

    /**
     * Creates a distributed value whose components a function creates, called for one replica after another
     * on this thread.
     *
     * @throws X the exception that the function threw
     */
    public static <X extends Exception> Value fromFunction(Strategy strategy, ComponentFunction<X> fn) throws X {
        Objects.requireNonNull(fn, "fn");
        Target target = new Target() {
            @Override
            long value(int replica, int numReplicas) throws X {
                return handedOver(fn.call(replica, numReplicas));
            }
        };
        return Calls.<X>valueOf(target,
                (uses, token, out)
                        -> DistModule.dist_values_from_function(uses.of(strategy, "strategy"), token, out));
    }

    /** Returns a new reference to the same value, which is closed separately. */
    public Value retain() {
        return ask(handle -> taken(DistModule.dist_value_retain(handle)));
    }

    /** Returns the kind of the value. */
    public ValueKind kind() {
        return ValueKind.of(askInt(DistModule::dist_value_kind_of));
    }

    /** Returns the number of items: components, entries or parts; 0 for other kinds. */
    public int size() {
        return askInt(handle -> (int) DistModule.dist_value_size(handle));
    }

    /** Returns item {@code index}: a component, an entry or a part. */
    public Value item(int index) {
        Value item = ask(handle -> item(DistModule.dist_value_item(handle, index)));
        if (item == null || index < 0) {
            throw new IndexOutOfBoundsException("item " + index + " of " + size());
        }
        return item;
    }

    /** Returns all items. */
    public List<Value> items() {
        return IntStream.range(0, size()).mapToObj(this::item).toList();
    }

    /** Returns the key of item {@code index} of a dictionary; null if there is none. */
    public String key(int index) {
        return ask(handle -> Texts.of(DistModule.dist_value_key(handle, index)));
    }

    /** Returns the item of a dictionary with the given key; null if there is none. */
    public Value get(String key) {
        byte[] bytes = Texts.bytes(key, "key");
        return ask(handle -> item(DistModule.dist_value_get(handle, bytes)));
    }

    private Value item(long item) {
        return item == 0 ? null : new Value(item, whole());
    }

    /** Returns the outermost value of which this is an item, or this value. */
    Value whole() {
        return parent == null ? this : parent;
    }

    /**
     * Returns the value's tensor in libdist's memory, which must not be written. For a variable, this is
     * replica 0's copy.
     *
     * @throws DistException INVALID_ARGUMENT the value is not a tensor; the message states its kind
     */
    public Tensor tensor() {
        return ask(handle -> {
            long[] numbers = Tensor.room();
            DistModule.dist_value_tensor(handle, numbers);
            return Tensor.described(numbers, new Memory(handle, Tensor.described(numbers, null)));
        });
    }

    /** Returns how a SHARDED value is divided over logical devices. */
    public Partition partition() {
        dist_partition raw = new dist_partition();
        try {
            return ask(handle -> {
                DistModule.dist_value_partition(handle, raw);
                return Partition.of(raw);
            });
        } finally {
            raw.delete();
        }
    }

    /**
     * A part of a tensor.
     *
     * @param begin position in the whole tensor at which it begins, in each dimension
     * @param tensor a view into the whole tensor
     */
    public record Shard(long[] begin, Tensor tensor) {}

    /**
     * Returns the part of a SHARDED value that a logical device has.
     *
     * @throws DistException NOT_FOUND the tensor is assigned to another logical device
     */
    public Shard shard(int logicalDevice) {
        return ask(handle -> {
            long[] numbers = Tensor.room();
            long[] begin = Coordinates.asked(n -> n.value_shard(handle, logicalDevice, numbers));
            Tensor view = Tensor.described(numbers, new Memory(handle, Tensor.described(numbers, null)));
            return new Shard(begin, view);
        });
    }

    /** A reference that a view of the value's memory holds. */
    private static final class Memory {
        Memory(long handle, Tensor view) {
            long retained = DistModule.dist_value_retain(handle);
            long bytes = view.sizeBytes();
            Native.CLEANER.register(this, () -> {
                DistModule.dist_value_release(retained);
                Pressure.remove(bytes);
            });
            Pressure.add(bytes);
        }
    }

    /** Returns the variable that the value refers to, if any. */
    public Optional<Variable> variable() {
        return ask(handle -> Variable.found(DistModule.dist_value_variable(handle)));
    }

    /**
     * Returns the variable that the value refers to, or of which it is a copy (as returned by {@link
     * Strategy#localResults}), if any.
     */
    public Optional<Variable> container() {
        return ask(handle -> Variable.found(DistModule.dist_value_container(handle)));
    }

    /** Returns the text of a text value; null for other kinds. */
    public String text() {
        return ask(handle -> Texts.of(DistModule.dist_value_text(handle)));
    }

    /** Returns the object that the value holds; null for other kinds. */
    public Object object() {
        return ask(handle -> {
            long token = DistModule.dist_value_object(handle);
            return token == 0 ? null : ((Kept) Upcalls.target(token)).object;
        });
    }

    /**
     * Returns the value as text, on one line, identically on every machine: "PerReplica: 0: f32 1, 1: f32 2".
     */
    public String describe() {
        return written(Text::describe_value);
    }

    /** Returns the same text as {@link #describe}; "closed" if the value is closed. */
    @Override
    public String toString() {
        return owner.isClosed() ? "closed" : describe();
    }

    /** Returns whether both are references to the same native value. Merging uses this identity. */
    @Override
    public boolean equals(Object other) {
        return other instanceof Value && ((Value) other).handle == handle;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(handle);
    }
}
