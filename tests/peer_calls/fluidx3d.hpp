// The calls of FluidX3D 2.14 that docs/coming_from/fluidx3d.md uses: the names, arguments and defaults of its interface,
// written anew. After them stands the lattice Boltzmann method of its README (D2Q9, one relaxation time) in plain C++.
// None of FluidX3D's code is in here.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using std::string;
typedef unsigned int uint;
typedef uint64_t ulong;
constexpr float pif = 3.1415927f;
constexpr ulong max_ulong = ~0ull;
inline float sq(float x) { return x*x; }
inline string to_string(float x, uint decimals) { char text[64]; std::snprintf(text, 64, "%.*f", (int)decimals, x); return text; }
inline void print_info(const string& s) { std::printf("%s\n", s.c_str()); }

class LBM {
	struct Field {
		std::vector<float> of_device, of_host;
		float& operator[](ulong i) { return of_host[i]; }
	};
	struct Vectors {
		LBM* lbm = nullptr;
		Field x, y, z;
		void read_from_device() { lbm->moments(); for(Field* f : {&x, &y}) f->of_host = f->of_device; } // not before
	};
	uint Nx, Ny, Nz;
	float nu;
	bool started = false;
	std::vector<float> f[9];
	static constexpr int cx[9] = {0, 1, -1, 0, 0, 1, -1, 1, -1}, cy[9] = {0, 0, 0, 1, -1, 1, -1, -1, 1};
	static float weight(int i) { return i==0 ? 4.0f/9.0f : i<5 ? 1.0f/9.0f : 1.0f/36.0f; }
	static float equilibrium(int i, float rho, float ux, float uy) { // less its weight, as FluidX3D stores it
		const float cu = cx[i]*ux+cy[i]*uy;
		return weight(i)*rho*(4.5f*cu*cu-1.5f*(ux*ux+uy*uy)+3.0f*cu)+weight(i)*(rho-1.0f);
	}
	void moments() {
		for(ulong n=0; n<get_N(); n++) {
			float r = 1.0f, jx = 0.0f, jy = 0.0f;
			for(int i=0; i<9; i++) { r += f[i][n]; jx += cx[i]*f[i][n]; jy += cy[i]*f[i][n]; }
			rho.of_device[n] = r; u.x.of_device[n] = jx/r; u.y.of_device[n] = jy/r;
		}
	}
	void step() {
		moments();
		std::vector<float> moved[9];
		for(int i=0; i<9; i++) {
			moved[i].resize(get_N());
			for(ulong n=0; n<get_N(); n++) {
				const uint x = (uint)(n%Nx), y = (uint)(n/Nx);
				const float to = equilibrium(i, rho.of_device[n], u.x.of_device[n], u.y.of_device[n]);
				moved[i][(x+Nx+cx[i])%Nx+(ulong)((y+Ny+cy[i])%Ny)*Nx] = f[i][n]+(to-f[i][n])/(3.0f*nu+0.5f);
			}
		}
		for(int i=0; i<9; i++) f[i] = moved[i];
	}
public:
	Field rho;
	Vectors u;
	LBM(const uint Nx, const uint Ny, const uint Nz, const float nu, const float fx=0.0f, const float fy=0.0f, const float fz=0.0f)
			: Nx(Nx), Ny(Ny), Nz(Nz), nu(nu) {
		if(Nz!=1u||fx!=0.0f||fy!=0.0f||fz!=0.0f) print_info("only two dimensions, without a force");
		u.lbm = this;
		rho.of_device = rho.of_host = std::vector<float>(get_N(), 1.0f);
		for(Field* f : {&u.x, &u.y, &u.z}) f->of_device = f->of_host = std::vector<float>(get_N(), 0.0f);
		for(int i=0; i<9; i++) f[i].resize(get_N());
	}
	ulong get_N() const { return (ulong)Nx*Ny*Nz; }
	void coordinates(const ulong n, uint& x, uint& y, uint& z) const {
		x = (uint)(n%Nx); y = (uint)(n/Nx%Ny); z = (uint)(n/((ulong)Nx*Ny));
	}
	void run(const ulong steps=max_ulong) {
		if(!started) for(int i=0; i<9; i++) for(ulong n=0; n<get_N(); n++) f[i][n] = equilibrium(i, rho[n], u.x[n], u.y[n]);
		started = true;
		for(ulong t=0; t<steps; t++) step();
	}
};
