"""Pictures of designs: no label hides another."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Annotation

from genodiff.reports.design_page import Label, write_labels


def draw_labels(labels: list[Label]) -> list[Annotation]:
    figure = Figure((6, 4))
    ax = figure.add_subplot()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    write_labels(ax, labels)
    return [one for one in ax.texts if isinstance(one, Annotation)]


def test_labels_of_near_points_stand_beside_one_another():
    near = [(f"method {i}", 0.5 + 0.03 * i, 0.5, "black") for i in range(4)]
    found = draw_labels(near)
    assert [one.get_text() for one in found] == [name for name, *_ in near]
    boxes = [one.get_window_extent() for one in found]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    axes = found[0].axes
    points = axes.transData.transform([(x, y) for _, x, y, _ in near])
    assert not any(box.contains(*point) for box in boxes for point in points)


def test_a_label_alone_stands_above_its_point_and_none_is_lost_in_a_crowd():
    assert draw_labels([("alone", 0.5, 0.5, "black")])[0].xyann == (5, 5)
    assert len(draw_labels([(f"method {i}", 0.5, 0.5, "black") for i in range(12)])) == 12
