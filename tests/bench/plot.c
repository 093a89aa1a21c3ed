/* plot < table > picture.svg: a panel of lines for every panel name. The table has columns with tabs between them:
 * panel, series, x, y and, if it is not the sequence length, what x is. The places of x are evenly spaced, in order
 * of their value; y starts at 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_POINTS = 8192,
    MAX_NAMES = 256,
    PANEL_WIDTH = 380,
    PANEL_HEIGHT = 260,
    COLUMNS = 2,
    LEFT = 56,
    TOP = 34,
    RIGHT = 14,
    BOTTOM = 34,
    LEGEND = 20
};

typedef struct {
    int panel, series;
    double x, y;
} point;

static point points[MAX_POINTS];
static int point_count, panel_count, series_count;
static char panels[MAX_NAMES][128], series[MAX_NAMES][128], axes[MAX_NAMES][64];
static const char *const colours[] = {"#0b6fa4", "#d1495b", "#2e8540", "#8e5ea2",
                                      "#c77d0a", "#4a4a4a", "#00a5a5", "#a05a2c",
                                      "#e377c2", "#17406d", "#8a9a1b", "#f2a65a"};
enum { COLOURS = sizeof colours / sizeof colours[0] };

static void too_many(const char *what, int most) {
    fprintf(stderr, "plot: more than %d %s\n", most, what);
    exit(1);
}

static int find(char (*names)[128], int *count, const char *name) {
    for (int i = 0; i < *count; i++)
        if (!strcmp(names[i], name)) return i;
    if (*count == MAX_NAMES) too_many("panels, or series", MAX_NAMES);
    snprintf(names[*count], sizeof names[0], "%s", name);
    return (*count)++;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void text(double x, double y, const char *anchor, const char *colour, const char *words) {
    printf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor, colour);
    for (; *words; words++) {
        if (*words == '<') printf("&lt;");
        else if (*words == '&') printf("&amp;");
        else putchar(*words);
    }
    printf("</text>\n");
}

int main(void) {
    char line[1024], panel[128], name[128], words[64], axis[64] = "";
    double x, y;
    while (fgets(line, sizeof line, stdin))
        if (sscanf(line, "%127[^\t]\t%127[^\t]\t%lf\t%lf\t%63[^\n]", panel, name, &x, &y, axis) >= 4) {
            point p = {find(panels, &panel_count, panel), find(series, &series_count, name), x, y};
            if (point_count == MAX_POINTS) too_many("points", MAX_POINTS);
            points[point_count++] = p;
            snprintf(axes[p.panel], sizeof axes[0], "%s", *axis ? axis : "sequence length");
            *axis = 0;
        }
    int rows = (panel_count + COLUMNS - 1) / COLUMNS, width = COLUMNS * PANEL_WIDTH;
    size_t longest = 1;
    for (int s = 0; s < series_count; s++) longest = strlen(series[s]) > longest ? strlen(series[s]) : longest;
    int slot = 40 + (int)(6.5 * (double)longest), a_row = (width - LEFT) / slot > 1 ? (width - LEFT) / slot : 1;
    int legend = (series_count + a_row - 1) / a_row, height = rows * PANEL_HEIGHT + legend * LEGEND + 10;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
           "font-family=\"sans-serif\" font-size=\"11\">\n",
           width, height, width, height);
    printf("<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    for (int s = 0; s < series_count; s++) {
        double at_x = LEFT + s % a_row * slot, at_y = 14 + s / a_row * LEGEND;
        printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\"/>\n", at_x, at_y,
               at_x + 18, at_y, colours[s % COLOURS]);
        text(at_x + 23, at_y + 4, "start", "#222", series[s]);
    }
    for (int p = 0; p < panel_count; p++) {
        double xs[MAX_POINTS], top = 0, left = p % COLUMNS * PANEL_WIDTH + LEFT,
                               low = legend * LEGEND + 10 + p / COLUMNS * PANEL_HEIGHT + PANEL_HEIGHT - BOTTOM;
        double w = PANEL_WIDTH - LEFT - RIGHT, h = PANEL_HEIGHT - TOP - BOTTOM;
        int count = 0, places = 0;
        for (int i = 0; i < point_count; i++)
            if (points[i].panel == p) xs[count++] = points[i].x, top = fmax(top, points[i].y);
        qsort(xs, (size_t)count, sizeof *xs, compare);
        for (int i = 0; i < count; i++)
            if (!places || xs[i] != xs[places - 1]) xs[places++] = xs[i];
        double step = pow(10, floor(log10(fmax(top, 1e-9) / 4)));
        step *= top / step / 4 > 5 ? 10 : top / step / 4 > 2 ? 5 : top / step / 4 > 1 ? 2 : 1;
        top = fmax(step, ceil(top / step) * step);
        text(left, low - h - 12, "start", "#000", panels[p]);
        for (double tick = 0; tick <= top + step / 2; tick += step) {
            printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", left,
                   low - h * tick / top, left + w, low - h * tick / top);
            snprintf(words, sizeof words, "%g", tick);
            text(left - 6, low - h * tick / top + 4, "end", "#444", words);
        }
        double gap = places > 1 ? (w - 40) / (places - 1) : 0;
        for (int i = 0; i < places; i++) {
            snprintf(words, sizeof words, "%g", xs[i]);
            text(left + 20 + i * gap, low + 16, "middle", "#444", words);
        }
        text(left + w / 2, low + 30, "middle", "#444", axes[p]);
        for (int s = 0; s < series_count; s++) {
            char path[MAX_POINTS];
            int length = 0;
            for (int k = 0; k < places; k++)
                for (int i = 0; i < point_count; i++)
                    if (points[i].panel == p && points[i].series == s && points[i].x == xs[k] &&
                        length < (int)sizeof path - 40) {
                        double at_x = left + 20 + k * gap, at_y = low - h * points[i].y / top;
                        length += snprintf(path + length, sizeof path - (size_t)length, "%.1f,%.1f ", at_x, at_y);
                        printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at_x, at_y, colours[s % COLOURS]);
                    }
            if (length)
                printf("<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", path,
                       colours[s % COLOURS]);
        }
    }
    printf("</svg>\n");
    return 0;
}
