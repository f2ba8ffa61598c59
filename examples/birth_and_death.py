"""Sheep and wolves: two populations on a meadow whose sides meet, with births, deaths and ids that
stay.

Sheep multiply where there is room and are caught by the wolves that are near; wolves live on what
they catch, and starve without. What an animal does is one function of that animal: it moves, and
returns its fate. A model of agents in the manner of A. J. Lotka (Elements of Physical Biology,
1925) and V. Volterra (1926); the numbers of both rise and fall in turns. When the last wolf has
died the run goes on: an array may be empty.

    python examples/birth_and_death.py [sheep] [steps] [device]
"""

import sys

import numpy as np

import lanewise as lw

SHEEP = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 400
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
SIZE = float(SHEEP) ** 0.5  # of the meadow: one sheep to every square
MEADOW = lw.Periodic((SIZE, SIZE))


@lw.record
class Animal:
    """A sheep or a wolf; energy is what a wolf has left of its meals."""

    position: lw.vec2
    energy: lw.f32
    id: lw.i64


@lw.pairwise(search=lw.Neighbors(radius=1.0, world=MEADOW))
def animals_near(target: Animal, source: Animal) -> lw.f32:
    return 1.0


@lw.function
def wandered(animal, step):
    place = animal.position + 0.5 * lw.unit_vector2(1, step, animal.id)
    return place - SIZE * lw.floor(place / SIZE)


@lw.elementwise
def graze(sheep: Animal, herd: lw.f32, wolves: lw.f32, step: lw.i32) -> lw.Fate:
    sheep.position = wandered(sheep, step)
    if lw.random(2, step, sheep.id) < 0.25 * wolves:
        return lw.Fate.DIE
    if lw.random(3, step, sheep.id) < 0.2 - 0.02 * herd:
        return lw.Fate.SPLIT
    return lw.Fate.KEEP


@lw.elementwise
def hunt(wolf: Animal, sheep: lw.f32, step: lw.i32) -> lw.Fate:
    wolf.position = wandered(wolf, step)
    wolf.energy += 0.08 * sheep - 0.15
    if wolf.energy < 0:
        return lw.Fate.DIE
    if wolf.energy > 2:
        wolf.energy /= 2  # the young one is a copy of its parent, with an id of its own
        return lw.Fate.SPLIT
    return lw.Fate.KEEP


def herd_of(count: int, seed: int) -> lw.Population:
    position = SIZE * np.random.default_rng(seed).random((count, 2))
    return lw.Population(
        Animal.array(position=position, energy=1.0, id=np.arange(count), device=DEVICE), ids="id"
    )


if __name__ == "__main__":
    sheep, wolves = herd_of(SHEEP, 1), herd_of(SHEEP // 10, 2)
    for step in range(STEPS + 1):
        if step % max(1, STEPS // 10) == 0:
            print(f"step {step:4}: {len(sheep):6,} sheep, {len(wolves):6,} wolves")
        herd = animals_near(sheep.records, sheep.records)
        hunters = animals_near(sheep.records, wolves.records)
        prey = animals_near(wolves.records, sheep.records)
        sheep.step(graze, herd, hunters, step)
        wolves.step(hunt, prey, step)
    print(f"{sheep.next_id:,} sheep and {wolves.next_id:,} wolves have lived")
