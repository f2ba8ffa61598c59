"""The vortex street behind a body that comes from a picture: dark is solid.

Its picture shows the vorticity.

Without a picture of yours, a letter is drawn. The frequency of the lift gives the Strouhal number.

    python examples/vortex_street.py [sites across the body] [vorticity.png] [body.png]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from lanewise.sims.lbm import Open, Simulation, Wall, obstacles
from lanewise.sims.lbm.view.flow import flow_title, plot_flow
from lanewise.sims.lbm.view.slices import ReferenceScale

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 20
PICTURE = sys.argv[2] if len(sys.argv) > 2 else "vorticity.png"
SPEED, RE = 0.1, 120
BODY, INLET, OUTLET = 1, 2, 3


def draw_letter(path: Path) -> Path:
    """A D with its back to the stream."""
    image = Image.new("L", (100, 160), 255)
    pen = ImageDraw.Draw(image)
    pen.pieslice((-100, 0, 99, 159), -90, 90, fill=0)
    image.save(path)
    return path


def main() -> None:
    shape = (12 * SIZE, 30 * SIZE)  # (ny, nx)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[3]) if len(sys.argv) > 3 else draw_letter(Path(folder) / "letter.png")
        # off the middle: it sheds sooner
        place = obstacles.Placement(length=SIZE, centre=(6 * SIZE, 6.2 * SIZE))
        body = obstacles.image_mask(path, shape, placement=place, report=print)

    mask = np.where(body, BODY, 0)
    mask[:, 0], mask[:, -1] = INLET, OUTLET
    simulation = Simulation(
        shape=shape,
        re=RE,
        speed=SPEED,
        length=SIZE,
        collision="mrt",
        mask=mask,
        velocity=(SPEED, 0.0),
        edges={"y": "slip"},
        kinds={
            BODY: Wall("body"),
            INLET: Open("inlet", "far-field", "x-", velocity=(SPEED, 0.0), density=1.0),
            OUTLET: Open("outlet", "pressure", "x+", density=1.0),
        },
    )

    crossing = round(SIZE / SPEED)  # steps in which the stream passes the body
    simulation.run(80 * crossing)
    forces: list[np.ndarray] = []
    every = max(1, crossing // 10)
    simulation.run(40 * crossing, callback=lambda s: forces.append(s.force_on("body")), every=every)
    drag, lift = np.transpose(forces) * 2 / (SPEED**2 * SIZE)
    rising = np.flatnonzero((lift[:-1] < lift.mean()) & (lift[1:] >= lift.mean()))
    print(f"drag coefficient {drag.mean():.3f}, lift from {lift.min():+.3f} to {lift.max():+.3f}")
    if len(rising) > 1:
        period = (rising[-1] - rising[0]) / (len(rising) - 1) * every
        print(f"Strouhal number {SIZE / SPEED / period:.3f} from {len(rising) - 1} periods")

    title = flow_title("vortex street", shape, simulation.step, RE)
    plot_flow(
        PICTURE,
        simulation.velocity,
        title,
        quantity="vorticity",
        solid=body,
        reference=ReferenceScale(SPEED, SIZE),
    )
    print(f"picture: {PICTURE}")


if __name__ == "__main__":
    main()
