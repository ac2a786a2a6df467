// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Objects;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_cross_device_options;

/** Reduces, broadcasts and gathers values outside runs (TensorFlow: CrossDeviceOps). Immutable. */
public final class CrossDevice extends NativeObject {
    private final Target target; // the functions of yours; null: none

    private CrossDevice(Native owner, Target target) {
        super(owner);
        this.target = target;
    }

    /** Creates operations of a kind. */
    public static CrossDevice create(CrossDeviceKind kind) {
        return create(kind, null, null, 0, null);
    }

    /**
     * Creates operations that reduce to one device.
     *
     * @param device a device name; null means any device
     * @param accumulate replaces +; null means +. MEAN divides by n afterwards
     */
    public static CrossDevice createReductionToOneDevice(String device, ReduceFunction accumulate) {
        return createReductionToOneDevice(device, accumulate, 0);
    }

    /**
     * Same as {@link #createReductionToOneDevice(String, ReduceFunction)}, for an operator with elements of
     * another size.
     *
     * @param elementBytes the size of one element of the operator, a multiple of the dtype's size, which is
     *         never split; 0 selects the dtype's size
     */
    public static CrossDevice createReductionToOneDevice(String device, ReduceFunction accumulate, long elementBytes) {
        return create(CrossDeviceKind.REDUCTION_TO_ONE_DEVICE, device, accumulate, elementBytes, null);
    }

    /** Creates operations that call your own functions. */
    public static CrossDevice fromFunctions(CrossDeviceFunctions functions) {
        return create(CrossDeviceKind.HOST, null, null, 0, Objects.requireNonNull(functions, "functions"));
    }

    private static CrossDevice create(CrossDeviceKind kind, String device, ReduceFunction accumulate, long elementBytes,
            CrossDeviceFunctions functions) {
        Target target = accumulate != null ? Targets.reduce(accumulate, elementBytes)
                : functions != null        ? CrossDeviceTarget.of(functions)
                                           : null;
        long token = target == null ? 0 : Upcalls.register(target);
        boolean made = false;
        dist_cross_device_options options = new dist_cross_device_options();
        try {
            options.setKind(kind.code);
            options.setReduce_to_device(Texts.orNull(device));
            if (accumulate != null) {
                options.set_accumulate(token);
                options.setAccumulate_element_bytes(elementBytes);
            }
            if (functions != null) {
                options.set_functions(token, CrossDeviceTarget.hasOwnBroadcast(functions) ? 1 : 0,
                        CrossDeviceTarget.hasOwnGather(functions) ? 1 : 0);
            }
            long[] out = new long[1];
            DistModule.dist_cross_device_create(options, out);
            made = true;
            return new CrossDevice(
                    new Native("cross-device object", out[0], DistModule::dist_cross_device_destroy), target);
        } finally {
            options.delete();
            if (!made) {
                Upcalls.unregister(token);
            }
        }
    }

    /** Returns the kind. */
    public CrossDeviceKind kind() {
        return CrossDeviceKind.of(askInt(DistModule::dist_cross_device_kind_of));
    }

    /** Returns the full name of the device with which the operations were created; null if there is none. */
    public String device() {
        return ask(handle -> Texts.of(DistModule.dist_cross_device_device(handle)));
    }

    private Value one(Value value, Destination destination, One call) {
        long[] out = new long[1];
        try (Uses uses = new Uses()) {
            call.with(uses.of(this), uses.of(value, "value"), Destination.toNative(uses, destination), out);
        } catch (DistException report) {
            throw rethrown(report);
        }
        return checked(Value.taken(out[0]));
    }

    @FunctionalInterface
    private interface One {
        void with(long crossDevice, long value, long destination, long[] out);
    }

    private RuntimeException rethrown(DistException report) {
        return target == null ? report : Target.<RuntimeException>rethrow(target.cause(report));
    }

    private <T> T checked(T result) {
        if (target != null) {
            target.check();
        }
        return result;
    }

    /**
     * Reduces a value without a strategy, like {@link Strategy#reduceTo}. The number of replicas is the
     * number of the value's components.
     */
    public Value reduce(ReduceOp op, Value value, Destination destination) {
        return one(value, destination,
                (handle, v, to, out) -> DistModule.dist_cross_device_reduce(handle, op.code, v, to, out));
    }

    /** Reduces several values without a strategy, like {@link Strategy#batchReduceTo}. */
    public List<Value> batchReduce(ReduceOp op, List<Value> values, List<Destination> destinations) {
        try {
            return checked(CrossReplica.batch(values, destinations,
                    (uses, in, to, n, out) -> DistModule.dist_cross_device_batch_reduce(
                                    uses.of(this), op.code, in, to, n, out)));
        } catch (DistException report) {
            throw rethrown(report);
        }
    }

    /**
     * Places a value at a destination without a strategy, like {@link Strategy#broadcastTo}. The destination
     * determines the number of replicas.
     */
    public Value broadcast(Value value, Destination destination) {
        return one(value, destination, DistModule::dist_cross_device_broadcast);
    }

    /** Concatenates the components of a value without a strategy, like {@link Strategy#gather}. */
    public Value gather(Value value, int axis) {
        return one(value, null,
                (handle, v, to, out) -> DistModule.dist_cross_device_gather(handle, v, axis, out));
    }
}
