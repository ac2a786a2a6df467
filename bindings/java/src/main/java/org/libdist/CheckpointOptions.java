// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.libdist.internal.dist_checkpoint_options;
import org.libdist.internal.dist_position;

/**
 * Specifies what a checkpoint contains besides the variables. Immutable: each method returns a new set of
 * options.
 */
public final class CheckpointOptions {
    /** The default options: the variables under their own names, and nothing else. */
    public static final CheckpointOptions DEFAULT = new CheckpointOptions(null, null, Map.of(), false);

    private final List<String> names;
    private final Position position;
    private final Map<String, String> metadata;
    private final boolean sharded;

    private CheckpointOptions(
            List<String> names, Position position, Map<String, String> metadata, boolean sharded) {
        this.names = names;
        this.position = position;
        this.metadata = metadata;
        this.sharded = sharded;
    }

    /** Sets the names of the variables in the file. */
    public CheckpointOptions names(List<String> names) {
        return new CheckpointOptions(
                List.copyOf(Objects.requireNonNull(names, "names")), position, metadata, sharded);
    }

    /** Saving: sets the input position to store. Loading: asks for the stored position. */
    public CheckpointOptions position(Position position) {
        return new CheckpointOptions(names, position, metadata, sharded);
    }

    /** Saving: sets texts to store in the file. Loading: ignored; see {@link Checkpoint#metadata}. */
    public CheckpointOptions metadata(Map<String, String> metadata) {
        return new CheckpointOptions(
                names, position, new TreeMap<>(Objects.requireNonNull(metadata, "metadata")), sharded);
    }

    /**
     * Saving: sets whether the path becomes an index, and each worker of the strategy writes its part of the
     * variables to a shard. Loading: ignored.
     */
    public CheckpointOptions sharded(boolean sharded) {
        return new CheckpointOptions(names, position, metadata, sharded);
    }

    boolean hasPosition() {
        return position != null;
    }

    int numNames(int otherwise) {
        return names == null ? otherwise : names.size();
    }

    dist_checkpoint_options toNative(Uses uses, dist_position place) {
        dist_checkpoint_options options = new dist_checkpoint_options();
        uses.defer(options::delete);
        if (names != null) {
            options.set_names(Texts.all(names, "names"), names.size());
        }
        options.setSharded(sharded ? 1 : 0);
        if (place != null) {
            options.setPosition(place);
        }
        if (!metadata.isEmpty()) {
            List<String> keys = List.copyOf(metadata.keySet());
            options.set_metadata_keys(Texts.all(keys, "keys"), keys.size());
            options.set_metadata_texts(Texts.all(List.copyOf(metadata.values())), keys.size());
        }
        return options;
    }

    dist_position place(Uses uses) {
        return position == null ? null : position.toNative(uses);
    }
}
