// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.libdist.internal.DistModule;
import org.libdist.internal.dist_checkpoint_map_options;
import org.libdist.internal.dist_position;

/**
 * A safetensors file of variables: saves and loads variables, and reads an open file. Any number of replicas
 * can load a file.
 */
public final class Checkpoint extends NativeObject {
    private Checkpoint(Native owner) {
        super(owner);
    }

    /**
     * Writes a file atomically: if the process ends at any time, either the complete old file or the complete
     * new file remains.
     */
    public static void save(
            Strategy strategy, Path path, List<Variable> variables, CheckpointOptions options) {
        checkNames(variables, options);
        try (Uses uses = new Uses()) {
            DistModule.dist_checkpoint_save(uses.waiting(strategy), bytes(path),
                    uses.all(variables, "variables"), variables.size(),
                    options.toNative(uses, place(uses, options)));
        }
    }

    /** Same as {@link #save(Strategy, Path, List, CheckpointOptions)}, with default options. */
    public static void save(Strategy strategy, Path path, List<Variable> variables) {
        save(strategy, path, variables, CheckpointOptions.DEFAULT);
    }

    /**
     * Loads the values of variables from a file.
     *
     * @return the saved input position, if the options ask for it
     */
    public static Optional<Position> load(
            Strategy strategy, Path path, List<Variable> variables, CheckpointOptions options) {
        checkNames(variables, options);
        try (Uses uses = new Uses()) {
            dist_position place = place(uses, options);
            DistModule.dist_checkpoint_load(uses.waiting(strategy), bytes(path),
                    uses.all(variables, "variables"), variables.size(), options.toNative(uses, place));
            return options.position != null ? Optional.of(Position.of(place)) : Optional.empty();
        }
    }

    /** Same as {@link #load(Strategy, Path, List, CheckpointOptions)}, with default options. */
    public static void load(Strategy strategy, Path path, List<Variable> variables) {
        load(strategy, path, variables, CheckpointOptions.DEFAULT);
    }

    private static void checkNames(List<Variable> variables, CheckpointOptions options) {
        if (options.names != null && options.names.length != variables.size()) {
            throw new IllegalArgumentException(
                    options.names.length + " names for " + variables.size() + " variables");
        }
    }

    private static dist_position place(Uses uses, CheckpointOptions options) {
        return options.position == null ? null : options.position.toNative(uses);
    }

    private static byte[] bytes(Path path) {
        return Texts.bytes(path.toString());
    }

    /** Opens a file to inspect and read its tensors. */
    public static Checkpoint open(Strategy strategy, Path path) {
        try (Uses uses = new Uses()) {
            long[] out = new long[1];
            DistModule.dist_checkpoint_open(uses.of(strategy, "strategy"), bytes(path), out);
            return new Checkpoint(new Native("checkpoint", out[0], DistModule::dist_checkpoint_destroy));
        }
    }

    /** Returns the number of tensors in the file. */
    public int size() {
        return askInt(handle -> (int) DistModule.dist_checkpoint_size(handle));
    }

    /** Returns the name of tensor {@code index}, in the order of the data, or "" if there is none. */
    public String name(int index) {
        return ask(handle -> Texts.of(DistModule.dist_checkpoint_name(handle, index)));
    }

    /**
     * Returns the dtype and shape of a tensor.
     *
     * @throws DistException NOT_FOUND the tensor does not exist; UNIMPLEMENTED libdist does not support the
     *         dtype
     */
    public TensorSpec spec(String name) {
        return ask(handle -> {
            long[] out = Tensor.room();
            DistModule.dist_checkpoint_spec(handle, Texts.bytes(name, "name"), out);
            if (out[1] == 0) {
                throw new DistException(
                        Status.UNIMPLEMENTED, "tensor " + name + " has a dtype that libdist has not");
            }
            Long[] shape = new Long[(int) out[2]];
            for (int d = 0; d < shape.length; d++) {
                shape[d] = out[4 + d];
            }
            return new TensorSpec(DType.of((int) out[1]), List.of(shape));
        });
    }

    /** Reads a tensor into memory. */
    public Value read(String name) {
        return ask(handle -> {
            long[] out = new long[1];
            DistModule.dist_checkpoint_read(handle, Texts.bytes(name, "name"), out);
            return Value.taken(out[0]);
        });
    }

    /**
     * Maps a tensor without copying it. Replicas, and other processes that map the file, share its memory; it
     * must not be written. The value stays valid if the file is replaced by renaming another file over it. If
     * other programs may write to the file itself, use {@link #read}.
     *
     * @param verify whether to verify the checksum, which reads the whole tensor
     */
    public Value map(String name, boolean verify) {
        return mapped(verify, (handle, options, out) ->
                DistModule.dist_checkpoint_map(handle, Texts.bytes(name, "name"), options, out));
    }

    /** Maps all tensors of the file, like {@link #map}, and returns them as a dictionary by name. */
    public Value mapAll(boolean verify) {
        return mapped(verify, DistModule::dist_checkpoint_map_all);
    }

    private interface MapCall {
        void call(long handle, dist_checkpoint_map_options options, long[] out);
    }

    private Value mapped(boolean verify, MapCall call) {
        dist_checkpoint_map_options options = new dist_checkpoint_map_options();
        try {
            options.setVerify(verify ? 1 : 0);
            return ask(handle -> {
                long[] out = new long[1];
                call.call(handle, options, out);
                return Value.taken(out[0]);
            });
        } finally {
            options.delete();
        }
    }

    /** Returns all texts of the file, including those of libdist, in the order of the file. */
    public Map<String, String> metadata() {
        return ask(handle -> {
            Map<String, String> all = new LinkedHashMap<>();
            for (long i = 0; i < DistModule.dist_checkpoint_num_metadata(handle); i++) {
                byte[] key = DistModule.dist_checkpoint_metadata_key(handle, i);
                all.put(Texts.of(key), Texts.of(DistModule.dist_checkpoint_metadata(handle, key)));
            }
            return all;
        });
    }
}
