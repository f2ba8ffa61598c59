// Made by `python -m lanewise.live.protocol`; change lanewise/live/protocol.py.
export const PATH = "/v1/feed";
export const MAGIC = "LWV1";
export const HEADER = [["kind","B",4,1],["flags","B",5,1],["components","B",6,1],["order","B",7,1],["sequence","I",8,1],["count","I",12,1],["first","I",16,1],["total","I",20,1],["step","Q",24,1],["time","d",32,1],["origin","f",40,3],["extent","f",52,3],["low","f",64,1],["high","f",68,1],["scale","i",72,1]];
export const HEADER_BYTES = 80;
export const SCALES = ["linear","log","rank"];
export const KINDS = {"points":0,"arrows":1,"slice":2,"volume":3,"suffix":4,"statistics":5,"boxes":6};
export const STRIDES = {"points":8,"arrows":12,"suffix":0,"boxes":16};
export const FLAGS = {"walls":1,"past":2,"clamped":4,"under":8,"over":16};
export const CLOSED = {"4401":"wrong token: open the whole address that the run printed","4429":"the run has as many viewers as it takes"};
export const GONE = 1001;
export const BACK_OFF = [500,8000];
export const MAPS = {"viridis":"RAFURxBjSB9wRy17RDmDQEaIO1KLNl2NMWiOLHKOKHyOJIaOIZGMH5qKIKSGKK6ANbd5SMFuXsliddBUkNdDrdwwyOAg5eQZ/ecl","magma":"AAAEBQQWEAstHRFHLBFfPw9yURJ8YBiAch+BgyaBkyuApTF+tzd5xz1z2EVs51Jj8WBd+HRc/Ilh/Ztr/rB4/sSI/teZ/eus/P2/","coolwarm":"O0zARl7PVHDeYoLqb5LzfqH6jbD+m7z/qsf9udD5xdby0tvo3dzc59fO78699cSs97ic96mL9Jh674hr53Rb3V9L0Uk/wy4xtAQm","ember":"O0/YP17dQ2/iSIDnS4/sUp/wY63xc7nxhMfxltXypt3sut7azuDJ4OG59OKn/NuV/NCE/cRx/rhe/61N/6BI/5JF/4VC/3dA/2o9"};
